"""The judge of lab 03: the numbers of a global batch, a mirrored program, what each worker sees of sharded files.

Numbers and shards are judged by programs; the mirrored program is observed, and compared with NumPy's training.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from lab_03 import observe
from lab_03.observe import MirroredTraining

from distlab.labs import Answer, Exercise, Lab, Raised, Verdict, not_done, right, wrong
from distlab.labs.by_programs import ByPrograms, Mistake, formulas
from distlab.labs.number_judge import number
from distlab.labs.plain_data import Array, as_record
from distlab.labs.reference_mlp import Weights, drawn_batch, drawn_weights

# Four numbers --------------------------------------------------------------------------------------------------------

SIZE, STEPS, UPDATES, LAST = NUMBERS = (
    "global batch size",
    "steps per epoch",
    "updates",
    "images in the last batch",
)


def numbers(images: int, per_replica: int, replicas: int, epochs: int) -> dict[str, int]:
    """The four numbers of a mirrored training."""
    size = per_replica * replicas
    steps = -(-images // size)
    return {SIZE: size, STEPS: steps, UPDATES: steps * epochs, LAST: images - (steps - 1) * size}


def trainings(generator: np.random.Generator) -> list[tuple[int, int, int, int]]:
    """With a smaller last batch, with a full one, and with fewer images than one replica gets."""
    replicas, per_replica = int(generator.integers(3, 9)), int(generator.integers(20, 60))
    full = int(generator.integers(5, 12)) * replicas * per_replica
    rest = int(generator.integers(per_replica + 1, 2 * per_replica))
    return [
        (full + rest, per_replica, replicas, 4),
        (full, per_replica, replicas, int(generator.integers(2, 9))),
        (per_replica - 3, per_replica, replicas, 3),
    ]


NUMBER_FORMULAS = {
    SIZE: {
        "per_replica": "that is what one replica gets. How many images does one update see?",
        "per_replica // replicas": (
            "the strategy divides the global batch. Is the global batch larger or smaller than a part of it?"
        ),
    },
    STEPS: {
        "images // global_batch_size": "the images that do not fill a batch are trained on too.",
        "images // global_batch_size + 1": "if nothing is left over, there is no further batch.",
        "-(-images // per_replica)": "in one step every replica uses one batch, all at the same time.",
        "images // per_replica": (
            "in one step every replica uses one batch, and the images that do not fill a batch are trained on too."
        ),
        "images": "a step is an update, not an image.",
    },
    UPDATES: {
        "steps_per_epoch": "that is one epoch.",
        "updates * replicas": "the replicas make each update together, so it counts once.",
        "images // global_batch_size * epochs": (
            "each epoch has one step more, for the images that do not fill a batch."
        ),
        "-(-images // per_replica) * epochs": "count the steps with the global batch.",
        "-(-images * epochs // global_batch_size)": "each epoch ends with a batch of its own, also if it is not full.",
    },
    LAST: {
        "images % global_batch_size": "if nothing is left over, the last batch is a full one.",
        "images % per_replica": (
            "that is what is left after the batches of one replica. What is left after global batches?"
        ),
        "global_batch_size": "what is left after the full batches?",
        "-(-images_in_the_last_batch // replicas)": "that is one replica's part of it.",
    },
}
FOUR_NUMBERS = ByPrograms(
    numbers,
    trainings,
    said=lambda case: "for {:,} images, {} per replica, {} replicas, {} epochs".format(*case),
    parts=NUMBERS,
    otherwise="not right. Draw the batches as boxes on a line.",
    mistakes=formulas(numbers, NUMBER_FORMULAS),
)

# The mirrored program ------------------------------------------------------------------------------------------------

TOLERANCE = 1e-4  # a GPU multiplies with ten bits of a float's mantissa unless told otherwise
REPLICAS = 2  # the lab's strategy has two devices
FORMS = {
    observe.ANOTHER_STRATEGY: "`strategy` is no longer the mirrored strategy that the lab has made.",
    observe.NOT_TWO_THINGS: "`mirrored` returns two things, the model and the batches it was trained on.",
    observe.NO_MODEL: "The first thing that `mirrored` returns is not a Keras model.",
    observe.NO_BATCHES: "The second thing that `mirrored` returns is not a tf.data.Dataset.",
}


def judge_mirrored(answer: Answer, generator: np.random.Generator) -> Verdict:
    """Train with a rest on two replicas and on one; compare with NumPy and look at variables and batches."""
    per_replica = int(generator.integers(6, 12))
    weights = drawn_weights(generator)
    for rest, replicas in ((3, REPLICAS), (2, 1)):
        images, labels = drawn_batch(generator, 4 * replicas * per_replica + rest)
        try:
            observed = answer.inside(observe.train_and_observe, images, labels, weights, per_replica, replicas)
        except Raised as error:
            return wrong(hint_on_error(error))
        training = as_record(observed, MirroredTraining, "what `mirrored` returns")
        if training.problem:
            hint = FORMS.get(training.problem)
            return not_done("`mirrored` gives nothing") if hint is None else wrong(hint)
        context = "With a strategy of one replica: " if replicas == 1 else ""
        if hint := hint_on_batches(training, labels, per_replica, rest):
            return wrong(hint, context=context)
        if hint := hint_on_model(training) or hint_on_weights(training, images, labels, weights, per_replica):
            return wrong(hint, 0.5, context=context)
    return right("Every variable is on both devices, each gets its images, and the weights are those of one device.")


def hint_on_error(error: Raised) -> str:
    """Of TensorFlow's long messages the reason, which comes last."""
    if "scope" in error.message:
        return (
            "TensorFlow says that a variable and its use belong to different scopes. What must be created inside the "
            "scope?"
        )
    lines = [line.strip() for line in error.message.splitlines() if line.strip()]
    return f"`mirrored` raises {error.kind}: {lines[-1][:300] if lines else 'no message'}"


def hint_on_batches(training: MirroredTraining, labels: Array, per_replica: int, rest: int) -> str | None:
    """Where variables are missing, or images."""
    replicas, images, seen = training.replicas, len(labels), len(training.labels)
    first = training.parts[0] if training.parts else []
    gets = f"Each replica gets {first} images instead of {per_replica}"
    if min(training.copies, default=0) < replicas:
        return "The weights exist once, on one device: nothing is mirrored. Where must they be created?"
    if (copies := max(training.copies)) > replicas:
        return (
            f"Each variable has {copies} copies. A function that gets a strategy uses that one: where does another "
            "come from?"
        )
    if sum(first) == per_replica and replicas > 1:
        return f"{gets}: the strategy divides what batch(...) says. Which batch size is that?"
    if sum(first) > per_replica * replicas:
        return f"{gets}: one multiplication too many."
    if first != [per_replica] * replicas:
        return f"{gets}."
    if rest and seen == images - rest:
        return f"{rest} of {images} images are never seen: the last, smaller batch is dropped."
    if seen != images and training.is_endless:
        return (
            f"The batches never end, and those of one pass hold {seen} images instead of {images}: the next pass "
            "begins within a batch. Which is first, `batch` or `repeat`?"
        )
    if seen != images:
        return f"The batches hold {seen} images, and there are {images}. Each must come once."
    if not np.array_equal(training.labels, labels):
        return "The images come in another order than in the serial program, so the results cannot be compared."
    return None


def hint_on_model(training: MirroredTraining) -> str | None:
    """Where the model trains in another way than the serial one."""
    if training.dropout:
        return "The model drops units at random, so no two runs are equal. The serial program has no dropout."
    if not training.from_logits:
        return "The model gives logits, and the loss takes them for probabilities. Keep the serial program's loss."
    if training.optimizer not in ("SGD", "NoneType"):
        return f"The optimizer is {training.optimizer}; the serial program uses another one."
    if training.updates not in (-1, steps := len(training.parts)):
        return f"There were {training.updates} updates, and one pass over these batches has {steps}."
    return None


def hint_on_weights(
    training: MirroredTraining, images: Array, labels: Array, weights: Weights, per_replica: int
) -> str | None:
    """Where the weights are not those of the serial run."""
    replicas = training.replicas
    size = per_replica * replicas
    batches = observe.global_batches(images, labels, size)

    def are(expected: Weights) -> bool:
        return len(training.weights) == len(expected) and all(
            np.shape(array) == np.shape(reference) and np.allclose(array, reference, atol=TOLERANCE, rtol=0)
            for array, reference in zip(training.weights, expected, strict=True)
        )

    def by_fit(factor: float) -> Weights:
        return observe.by_fit(weights, batches, replicas, factor * observe.RATE)

    by_loop = observe.by_constant(weights, batches, size)
    if are(by_fit(1)) or are(observe.serially(weights, batches)) or are(by_loop):
        return None
    if are(weights):
        return "The weights are still the first ones: nothing was trained."
    if training.fits_arrays:
        return "`fit` got arrays, and those it shuffles. The serial run keeps the order: what does it give to `fit`?"
    if are(by_fit(replicas)):
        return "Each step is too long by the number of replicas. Is something summed or scaled that is already a mean?"
    if are(by_fit(1 / replicas)):
        return "Each step is too short by the number of replicas. Is something divided twice?"
    return (
        "The weights are not those of the serial run. Does the model begin with the first weights that the function "
        "gets, and is the learning rate the same?"
    )


# The auto-shard table ------------------------------------------------------------------------------------------------

OFF, DATA, FILE, AUTO = POLICIES = ("OFF", "DATA", "FILE", "AUTO")
FEW = "few files or images"


class Shards(NamedTuple):
    """One call."""

    policy: str
    files: list[int]
    workers: int
    batch: int


FEW_CASES = [
    Shards(FILE, [40, 20], 3, 4),
    Shards(AUTO, [64], 2, 4),
    Shards(OFF, [5], 3, 2),
    Shards(DATA, [5], 3, 2),
    Shards(DATA, [5], 3, 8),
    Shards(FILE, [3, 4, 5], 3, 20),
    Shards(DATA, [2, 2], 4, 1),
    Shards(DATA, [1, 1], 3, 4),
    Shards(OFF, [3], 2, 4),
]


def samples_seen(policy: str, images_per_file: Sequence[int], workers: int, batch: int) -> list[int] | None:
    """How many images each worker is given in one epoch; None where there are fewer files than workers."""
    if policy == OFF:
        return [sum(images_per_file)] * workers
    if policy == DATA:
        return of_all(divided, sizes(images_per_file, batch), workers)
    return dealt(images_per_file, workers) if len(images_per_file) >= workers else None


def sizes(files: Sequence[int], batch: int) -> list[int]:
    """Of the batches that a pipeline makes of the files."""
    return [min(batch, sum(files) - start) for start in range(0, sum(files), batch)]


def divided(size: int, workers: int) -> list[int]:
    """The parts of a batch: each as large as the first one, as far as there are images."""
    return in_parts_of(-(-size // workers), size, workers)


def in_parts_of(part: int, size: int, workers: int) -> list[int]:
    """A batch that is cut into parts of so many images."""
    return [min(part, max(0, size - worker * part)) for worker in range(workers)]


def balanced(size: int, workers: int) -> list[int]:
    """Parts that are as equal as possible."""
    return [len(range(worker, size, workers)) for worker in range(workers)]


def of_all(parts: Callable[[int, int], Sequence[int]], batches: Sequence[int], workers: int) -> list[int]:
    """What the workers get of all batches together."""
    return np.sum([parts(size, workers) for size in batches], axis=0).tolist()


def dealt(parts: Sequence[int], workers: int) -> list[int]:
    """One by one, like cards."""
    return [sum(parts[worker::workers]) for worker in range(workers)]


def in_blocks(parts: Sequence[int], workers: int) -> list[int]:
    """In connected blocks that are as equal as possible."""
    bounds = np.cumsum([0] + [len(part) for part in np.array_split(np.arange(len(parts)), workers)]).tolist()
    return [sum(parts[start:stop]) for start, stop in pairwise(bounds)]


def shards(generator: np.random.Generator) -> list[Shards]:
    """Each policy with drawn files, that no two policies deal out alike, and with two others; then few files."""
    workers = int(generator.integers(3, 5))
    batch = int(generator.integers(3, 5)) * workers + 1  # the parts of a batch differ, and by more than one image
    files: list[int] = []
    while not files or samples_seen(DATA, files, workers, batch) == dealt(files, workers):
        files = generator.integers(9, 30, int(generator.integers(2, 4)) * workers + 1).tolist()
        files[0] += batch - sum(files) % batch + workers + 1  # so many are left for the last batch
    runs = [(files, workers, batch), ([7, 12, 9, 4, 34], 2, 4), ([5, 3], 2, 3)]
    return [*(Shards(policy, *run) for policy in POLICIES for run in runs), *FEW_CASES]


def under(policies: Sequence[str], program: Callable[[list[int], int, int], Any]) -> Callable[..., Any]:
    """Wrong under these policies only."""
    return lambda policy, *run: program(*run) if policy in policies else samples_seen(policy, *run)


def otherwise(case: Shards, counts: Any) -> str:
    """For all other answers."""
    policy, files, workers, _ = case
    expected = samples_seen(*case)
    if counts is None:
        return NO_FILES if policy in (OFF, DATA) else ENOUGH
    listed = counts.tolist() if isinstance(counts, np.ndarray) else counts
    values = [number(count) for count in listed] if isinstance(listed, (list, tuple)) else []
    known = [count for count in values if count is not None]
    if not len(values) == len(known) == workers:
        return f"it must be a list with one number for each of {workers} workers."
    if expected is None:
        return "some worker would have no file at all. What does TensorFlow do then?"
    if sorted(known) == sorted(expected):
        return "the numbers are right, but for other workers. Which part or file is that of worker 0?"
    if sum(known) == sum(files):
        return "they add up to all images, but other workers get them. Draw the parts of two batches, or four files."
    return f"they add up to {sum(known):g} of {sum(files)} images."


WHOLE_BATCHES = (
    "here a whole batch goes to one worker. `batch` is the global batch: for how many workers is each of them?"
)
BALANCED = (
    "the parts are as equal as possible here. Each part is as large as the first one, as far as there are images: how "
    "many are left for the last worker?"
)
REST_LOST = "a batch that the workers do not divide has a rest, which is trained on too. Is a part rounded down or up?"
AS_A_WHOLE = "TensorFlow refuses as a whole: what stands for that is one None, not one per worker."
NO_FILES = (
    "this policy deals out no files, so TensorFlow does not refuse. What does a worker get for whom nothing is left?"
)
ENOUGH = "there are enough files, so TensorFlow does not refuse."
IN_BLOCKS = "files are dealt out one by one like cards, not cut into connected blocks."
BY_FILES = (FILE, AUTO)


def none_if_empty(counts: list[int]) -> list[int] | None:
    """None where some worker has nothing."""
    return counts if all(counts) else None


def enough(files: Sequence[int], workers: int) -> bool:
    """Whether each worker gets a file."""
    return len(files) >= workers


SAMPLES_SEEN = ByPrograms(
    samples_seen,
    shards,
    said=lambda case: (
        f"for {case.policy}, files of {case.files} images, {case.workers} workers, batches of {case.batch}"
    ),
    parts=(*POLICIES, FEW),
    split=lambda case, counts: {FEW if case in FEW_CASES else case.policy: counts},
    after={FEW: lambda case: case.policy},
    otherwise=otherwise,
    mistakes=[
        Mistake(
            "with OFF nothing is rewritten. What does a pipeline read that nobody has divided?",
            under([OFF], lambda f, w, b: [len(part) for part in np.array_split(np.arange(sum(f)), w)]),
        ),
        Mistake({FEW: NO_FILES}, under([OFF], lambda f, w, b: [sum(f)] * w if enough(f, w) else None)),
        Mistake({FEW: NO_FILES}, under([DATA], lambda f, w, b: samples_seen(DATA, f, w, b) if enough(f, w) else None)),
        Mistake({FEW: NO_FILES}, under([DATA], lambda f, w, b: none_if_empty(samples_seen(DATA, f, w, b)))),
        Mistake(WHOLE_BATCHES, under([DATA], lambda f, w, b: dealt(sizes(f, b), w))),
        Mistake(WHOLE_BATCHES, under([DATA], lambda f, w, b: none_if_empty(dealt(sizes(f, b), w)))),
        Mistake(WHOLE_BATCHES, under([DATA], lambda f, w, b: in_blocks(sizes(f, b), w))),
        Mistake(BALANCED, under([DATA], lambda f, w, b: of_all(balanced, sizes(f, b), w))),
        Mistake(REST_LOST, under([DATA], lambda f, w, b: [sum(size // w for size in sizes(f, b))] * w)),
        Mistake(
            "the last batch is smaller, and it is trained on too.",
            under([DATA], lambda f, w, b: of_all(divided, [b] * (sum(f) // b), w)),
        ),
        Mistake(
            "the last batch is smaller than `batch`: how many images are left for it?",
            under([DATA], lambda f, w, b: of_all(divided, [b] * len(sizes(f, b)), w)),
        ),
        Mistake(
            "the last batch is smaller, and so are its parts. Of how many images is each of them?",
            under([DATA], lambda f, w, b: of_all(lambda size, w: in_parts_of(-(-b // w), size, w), sizes(f, b), w)),
        ),
        Mistake(
            "all images are divided at once here. What is divided, and how often?",
            under([DATA], lambda f, w, b: balanced(sum(f), w)),
        ),
        Mistake(
            "all images are divided at once here. What is divided, and how often?",
            under([DATA], lambda f, w, b: divided(sum(f), w)),
        ),
        *(Mistake(IN_BLOCKS, under([policy], lambda f, w, b: in_blocks(f, w))) for policy in BY_FILES),
        *(
            Mistake(
                "these are numbers of files. How many images are in them?",
                under([policy], lambda f, w, b: dealt([1] * len(f), w) if enough(f, w) else None),
            )
            for policy in BY_FILES
        ),
        Mistake(
            dict.fromkeys(BY_FILES, ENOUGH),
            under(BY_FILES, lambda f, w, b: dealt(f, w) if len(f) > w else None),
        ),
        Mistake({FEW: AS_A_WHOLE}, under(BY_FILES, lambda f, w, b: dealt(f, w) if enough(f, w) else [None] * w)),
        Mistake(
            {FEW: "some worker would have no file at all. What does TensorFlow do then?"},
            under(BY_FILES, lambda f, w, b: dealt(f, w)),
        ),
        *(
            Mistake("this would be OFF.", under([policy], lambda f, w, b: [sum(f)] * w))
            for policy in (DATA, FILE, AUTO)
        ),
        Mistake(
            "this would be DATA. The pipeline reads files: what does AUTO try first?",
            under([AUTO], lambda f, w, b: samples_seen(DATA, f, w, b)),
        ),
        *(
            Mistake("this would be DATA.", under([policy], lambda f, w, b: samples_seen(DATA, f, w, b)))
            for policy in (OFF, FILE)
        ),
        *(
            Mistake("this would be FILE.", under([policy], lambda f, w, b: samples_seen(FILE, f, w, b)))
            for policy in (OFF, DATA)
        ),
    ],
)


LAB = Lab(
    "03_mirrored_strategy",
    [
        Exercise("numbers", 4, FOUR_NUMBERS),
        Exercise("mirrored", 6, judge_mirrored),
        Exercise("samples_seen", 5, SAMPLES_SEEN),
    ],
    tensorflow=True,
)
