"""The exercises of lab 03: the numbers of a mirrored training, a serial program made mirrored, the auto-shard table."""

from collections.abc import Sequence
from itertools import pairwise
from typing import TypeVar

import numpy as np

from distlab.labs.answer import Answer
from distlab.labs.answer_errors import NotPlain, Raised
from distlab.labs.lab import Exercise, Lab
from distlab.labs.lab_03 import observe
from distlab.labs.lab_03.hints import Lab03Hint
from distlab.labs.lab_03.observe import MirroredTraining
from distlab.labs.number_judge import Expected, NumberJudge
from distlab.labs.part_cases import error_verdict
from distlab.labs.plain_data import Array, Plain, as_record
from distlab.labs.reference_mlp import Weights, drawn_batch, drawn_weights
from distlab.labs.verdict import AnyHint, Verdict, not_done, parts, right, wrong

Item = TypeVar("Item")

TOLERANCE = 1e-4  # a GPU multiplies with ten bits of a float's mantissa unless told otherwise
REPLICAS = 2  # the lab's strategy has two devices
NUMBERS = ("global batch size", "steps per epoch", "updates", "images in the last batch")
POLICIES = ("OFF", "DATA", "FILE", "AUTO")
FEW = "few files or batches"


# Four numbers


def numbers_of(images: int, per_replica: int, replicas: int, epochs: int) -> dict[str, int]:
    """The four numbers of a mirrored training, by name."""
    global_batch = per_replica * replicas
    steps = -(-images // global_batch)
    return dict(zip(NUMBERS, (global_batch, steps, steps * epochs, images - (steps - 1) * global_batch), strict=True))


def _expected_numbers(images: int, per_replica: int, replicas: int, epochs: int) -> dict[str, Expected]:
    """For each number what usual mistakes give, with their hints."""
    numbers = numbers_of(images, per_replica, replicas, epochs)
    size, steps, updates, last = (numbers[name] for name in NUMBERS)
    small_steps = -(-images // per_replica)
    mistakes: dict[str, list[tuple[float | None, AnyHint]]] = {
        "global batch size": [
            (per_replica, Lab03Hint.BATCH_OF_ONE_REPLICA),
            (per_replica // replicas, Lab03Hint.BATCH_DIVIDED),
        ],
        "steps per epoch": [
            (images // size, Lab03Hint.STEPS_WITHOUT_REST),
            (small_steps, Lab03Hint.STEPS_OF_ONE_REPLICA),
            (images // per_replica, Lab03Hint.STEPS_OF_ONE_REPLICA_WITHOUT_REST),
            (images, Lab03Hint.ONE_STEP_PER_IMAGE),
        ],
        "updates": [
            (steps, Lab03Hint.UPDATES_OF_ONE_EPOCH),
            (updates * replicas, Lab03Hint.UPDATES_TIMES_REPLICAS),
            (images // size * epochs, Lab03Hint.UPDATES_WITHOUT_REST),
            (small_steps * epochs, Lab03Hint.UPDATES_OF_ONE_REPLICA),
        ],
        "images in the last batch": [
            (0, Lab03Hint.LAST_BATCH_EMPTY),
            (images % per_replica, Lab03Hint.LAST_BATCH_OF_SMALL_BATCHES),
            (size, Lab03Hint.LAST_BATCH_FULL),
            (-(-last // replicas), Lab03Hint.LAST_BATCH_OF_ONE_REPLICA),
        ],
    }
    return {name: Expected(numbers[name], mistakes[name], Lab03Hint.ANOTHER_NUMBER) for name in NUMBERS}


def judge_numbers(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A quarter of the points for each number that is right in every case."""
    replicas, per_replica = int(generator.integers(3, 9)), int(generator.integers(20, 60))
    full = int(generator.integers(5, 12)) * replicas * per_replica
    judge = NumberJudge("numbers", NUMBERS)
    for case in (
        (full + int(generator.integers(per_replica + 1, 2 * per_replica)), per_replica, replicas, 4),
        (full, per_replica, replicas, int(generator.integers(2, 9))),
        (per_replica - 3, per_replica, replicas, 3),
    ):
        words = "{:,} images, {} per replica, {} replicas, {} epochs".format(*case)
        if problem := judge.compare(answer.call("numbers", *case), _expected_numbers(*case), words):
            return problem
    return judge.verdict()


# The mirrored program


def judge_mirrored(answer: Answer, generator: np.random.Generator) -> Verdict:
    """Train with a rest on two replicas and on one; compare with NumPy and look at variables and batches."""
    per_replica = int(generator.integers(6, 12))
    weights = drawn_weights(generator)
    for rest, replicas in ((3, REPLICAS), (2, 1)):
        images, labels = drawn_batch(generator, 4 * replicas * per_replica + rest)
        try:
            observed = answer.inside(observe.train_and_observe, images, labels, weights, per_replica, replicas)
        except Raised as error:
            return wrong(_hint_of_raised(error))
        training = as_record(observed, MirroredTraining, "what `mirrored` returns")
        if training.problem:
            return _verdict_on_form(training.problem)
        context = "With a strategy of one replica: " if replicas == 1 else ""
        if hint := _hint_of_batches(training, labels, per_replica, rest):
            return wrong(hint, context=context)
        if hint := _hint_of_model(training) or _hint_of_weights(training, images, labels, weights, per_replica):
            return wrong(hint, 0.5, context=context)
    return right("Every variable is on both devices, each gets its images, and the weights are those of one device.")


_HINTS_OF_FORM = {
    observe.ANOTHER_STRATEGY: Lab03Hint.ANOTHER_STRATEGY,
    observe.NOT_TWO_THINGS: Lab03Hint.NOT_TWO_THINGS,
    observe.NO_MODEL: Lab03Hint.NO_MODEL,
    observe.NO_BATCHES: Lab03Hint.NO_BATCHES,
}


def _verdict_on_form(problem: str) -> Verdict:
    hint = _HINTS_OF_FORM.get(problem)
    return not_done("`mirrored` gives nothing") if hint is None else wrong(hint)


def _hint_of_raised(error: Raised) -> AnyHint:
    if "scope" in error.message:
        return Lab03Hint.DIFFERENT_SCOPES
    lines = [line.strip() for line in error.message.splitlines() if line.strip()]  # TensorFlow's reason comes last
    return Lab03Hint.RAISED.says(kind=error.kind, message=lines[-1][:300] if lines else "no message")


def _hint_of_batches(training: MirroredTraining, labels: Array, per_replica: int, rest: int) -> AnyHint | None:
    replicas, images, seen = training.replicas, len(labels), len(training.labels)
    first = training.parts[0] if training.parts else []
    if min(training.copies, default=0) < replicas:
        return Lab03Hint.NOT_MIRRORED
    if max(training.copies) > replicas:
        return Lab03Hint.STRATEGY_IGNORED.says(copies=max(training.copies))
    if sum(first) == per_replica and replicas > 1:
        return Lab03Hint.PER_REPLICA_BATCH.says(parts=first, expected=per_replica)
    if sum(first) > per_replica * replicas:
        return Lab03Hint.MULTIPLIED_TWICE.says(parts=first, expected=per_replica)
    if first != [per_replica] * replicas:
        return Lab03Hint.WRONG_PARTS.says(parts=first, expected=per_replica)
    if rest and seen == images - rest:
        return Lab03Hint.REST_DROPPED.says(rest=rest, images=images)
    if seen != images and training.is_endless:
        return Lab03Hint.NEXT_PASS_BEGINS.says(seen=seen, images=images)
    if seen != images:
        return Lab03Hint.WRONG_COUNT.says(seen=seen, images=images)
    return None if np.array_equal(training.labels, labels) else Lab03Hint.WRONG_ORDER


def _hint_of_model(training: MirroredTraining) -> AnyHint | None:
    if training.dropout:
        return Lab03Hint.DROPOUT
    if not training.from_logits:
        return Lab03Hint.LOGITS_AS_PROBABILITIES
    if training.optimizer not in ("SGD", "NoneType"):
        return Lab03Hint.ANOTHER_OPTIMIZER.says(optimizer=training.optimizer)
    steps = len(training.parts)
    if training.updates not in (-1, steps):
        return Lab03Hint.WRONG_UPDATES.says(updates=training.updates, steps=steps)
    return None


def _hint_of_weights(
    training: MirroredTraining, images: Array, labels: Array, weights: Weights, per_replica: int
) -> AnyHint | None:
    replicas = training.replicas
    size = per_replica * replicas
    batches = observe.global_batches(images, labels, size)

    def are(expected: Weights) -> bool:
        return len(training.weights) == len(expected) and all(
            np.shape(array) == np.shape(reference) and np.allclose(array, reference, atol=TOLERANCE, rtol=0)
            for array, reference in zip(training.weights, expected, strict=True)
        )

    if (
        are(observe.by_fit(weights, batches, replicas))
        or are(observe.serially(weights, batches))
        or are(observe.by_constant(weights, batches, size))
    ):
        return None
    if are(weights):
        return Lab03Hint.NOT_TRAINED
    if training.fits_arrays:
        return Lab03Hint.FIT_SHUFFLES
    for factor, hint in ((replicas, Lab03Hint.STEPS_TOO_LONG), (1 / replicas, Lab03Hint.STEPS_TOO_SHORT)):
        if are(observe.by_fit(weights, batches, replicas, factor * observe.RATE)):
            return hint
    return Lab03Hint.OTHER_WEIGHTS


# The auto-shard table


def samples_seen(policy: str, images_per_file: Sequence[int], workers: int, batch: int) -> list[int] | None:
    """How many images each worker is given in one epoch, of files that the pipeline reads and batches.

    Under DATA a worker keeps every `workers`-th batch, under FILE every `workers`-th file, and AUTO is FILE, since
    files are read; None where TensorFlow refuses, because there are fewer batches or files than workers.
    """
    total = sum(images_per_file)
    if policy == "OFF":
        return [total] * workers
    parts = images_per_file
    if policy == "DATA":
        parts = [min(batch, total - at) for at in range(0, total, batch)]
    return [sum(parts[worker::workers]) for worker in range(workers)] if len(parts) >= workers else None


ShardCase = tuple[str, list[int], int, int]
"""The arguments of `samples_seen`."""


def judge_samples(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A fifth of the points for each policy, and for few files or batches."""
    workers = int(generator.integers(2, 4))
    batch = int(generator.integers(1, 3)) * workers + 1  # so that parts of batches are no single images dealt out
    while True:
        files = generator.integers(5, 30, int(generator.integers(2, 4)) * workers + 1).tolist()
        by_data, by_file = (samples_seen(policy, files, workers, batch) or [] for policy in ("DATA", "FILE"))
        if sorted(by_data) != sorted(by_file):
            break
    cases: dict[str, list[ShardCase]] = {
        policy: [(policy, files, workers, batch), (policy, [7, 12, 9, 4, 34], 2, 4), (policy, [5, 3], 2, 3)]
        for policy in POLICIES
    }
    cases[FEW] = [
        ("FILE", [40, 20], 3, 4),
        ("AUTO", [64], 2, 4),
        ("OFF", [5], 3, 2),
        ("DATA", [5], 3, 2),
        ("DATA", [6, 6], 3, 5),
        ("DATA", [5], 3, 8),
        ("FILE", [3, 4, 5], 3, 20),
        ("DATA", [4, 4, 4], 2, 12),
        ("OFF", [3], 2, 4),
        ("DATA", [2, 2], 4, 1),
    ]
    verdicts = {policy: _verdict_on_cases(answer, cases[policy]) for policy in POLICIES}
    # What is wrong with a policy anyway is said once.
    others = [case for case in cases[FEW] if verdicts[case[0]].is_right]
    verdicts[FEW] = _verdict_on_cases(answer, others) if others else not_done("no policy is right yet")
    return parts(verdicts)


def _verdict_on_cases(answer: Answer, group: Sequence[ShardCase]) -> Verdict:
    for case in group:
        policy, files, workers, batch = case
        said = f"for {policy}, files of {files} images, {workers} workers, batches of {batch}: "
        try:
            counts = answer.call("samples_seen", *case, none_is_an_answer=True)
        except (Raised, NotPlain) as error:
            return error_verdict(error, said)
        if isinstance(counts, np.ndarray):
            counts = np.ravel(counts).tolist()
        elif isinstance(counts, tuple):
            counts = list(counts)
        if counts != samples_seen(*case):
            return wrong(_hint_of_samples(counts, *case), context=f"{counts!r} {said}")
    return right()


def _hint_of_samples(counts: Plain, policy: str, files: Sequence[int], workers: int, batch: int) -> AnyHint:
    if samples_seen(policy, files, workers, batch) is None:
        if isinstance(counts, list) and counts and all(count is None for count in counts):
            return Lab03Hint.NONE_FOR_ALL_TOGETHER
        return Lab03Hint.SOMEBODY_WITHOUT_A_BATCH if policy == "DATA" else Lab03Hint.SOMEBODY_WITHOUT_A_FILE
    if counts is None:
        enough = policy in ("FILE", "AUTO") or len(files) >= workers
        return Lab03Hint.NOT_REFUSED if enough else Lab03Hint.FILES_DO_NOT_MATTER
    numbers = [count for count in counts if isinstance(count, (int, float))] if isinstance(counts, list) else []
    if not isinstance(counts, list) or not len(counts) == len(numbers) == workers:
        return Lab03Hint.NOT_ONE_PER_WORKER.says(workers=workers)
    for policies, mistaken, hint in _shard_mistakes(files, workers, batch):
        if policy in policies and numbers == mistaken:
            return hint
    expected = samples_seen(policy, files, workers, batch) or []
    if sorted(numbers) == sorted(expected):
        return Lab03Hint.OTHER_WORKERS
    if sum(numbers) == sum(files):
        return Lab03Hint.OTHERWISE_DEALT
    return Lab03Hint.WRONG_SUM.says(seen=sum(numbers), images=sum(files))


def _shard_mistakes(
    files: Sequence[int], workers: int, batch: int
) -> list[tuple[tuple[str, ...], list[int] | None, Lab03Hint]]:
    """What usual mistakes give, under which policies, with their hints."""
    total = sum(files)
    sizes = [min(batch, total - at) for at in range(0, total, batch)]
    by_image = [len(range(worker, total, workers)) for worker in range(workers)]
    by_data, by_file = (samples_seen(policy, files, workers, batch) for policy in ("DATA", "FILE"))
    equal = [len(part) for part in np.array_split(np.arange(total), workers)]
    by_parts = [sum(len(range(worker, size, workers)) for size in sizes) for worker in range(workers)]
    smaller = samples_seen("DATA", files, workers, max(1, batch // workers))
    by_file_block = [sum(block) for block in _blocks(files, workers)]
    return [
        (("OFF",), equal, Lab03Hint.OFF_DIVIDES),
        (("DATA",), by_parts if by_parts != by_image else None, Lab03Hint.BATCH_IS_DIVIDED),
        (("DATA",), by_image, Lab03Hint.DATA_BY_IMAGES),
        (("DATA",), smaller, Lab03Hint.BATCH_IS_DIVIDED),
        (("DATA",), [sum(block) for block in _blocks(sizes, workers)], Lab03Hint.DATA_IN_BLOCKS),
        (("FILE", "AUTO"), by_file_block, Lab03Hint.FILES_IN_BLOCKS),
        (("FILE", "AUTO"), [len(files[at::workers]) for at in range(workers)], Lab03Hint.COUNTS_FILES),
        (POLICIES, [total] * workers, Lab03Hint.THIS_IS_OFF),
        (("AUTO",), by_data, Lab03Hint.AUTO_IS_NOT_DATA),
        (POLICIES, by_data, Lab03Hint.THIS_IS_DATA),
        (POLICIES, by_file, Lab03Hint.THIS_IS_FILE),
    ]


def _blocks(items: Sequence[Item], count: int) -> list[Sequence[Item]]:
    """The items in connected blocks that are as equal as possible."""
    bounds = np.cumsum([0] + [len(part) for part in np.array_split(np.arange(len(items)), count)]).tolist()
    return [items[start:stop] for start, stop in pairwise(bounds)]


LAB = Lab(
    "03_mirrored_strategy",
    [
        Exercise("numbers", 4, judge_numbers),
        Exercise("mirrored", 6, judge_mirrored),
        Exercise("samples_seen", 5, judge_samples),
    ],
    tensorflow=True,
)
