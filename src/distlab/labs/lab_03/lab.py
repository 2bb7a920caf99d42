"""The exercises of lab 03: the numbers of a mirrored training, a serial program made mirrored, the auto-shard table."""

from collections.abc import Mapping

import numpy as np

from distlab.labs.answer import Answer
from distlab.labs.answer_errors import Raised
from distlab.labs.lab import Exercise, Lab
from distlab.labs.lab_03 import inside as training
from distlab.labs.lab_03.auto_shard import judge_samples
from distlab.labs.reference_mlp import Weights, drawn_batch, drawn_weights
from distlab.labs.verdict import Verdict, not_done, parts, right, wrong

TOLERANCE = 1e-4  # a GPU multiplies with ten bits of a float's mantissa unless told otherwise
REPLICAS = 2  # the lab's strategy has two devices

Case = tuple[int, int, int, int]
"""Images, images per replica, replicas, epochs."""

NUMBERS = ("global batch size", "steps per epoch", "updates", "images in the last batch")


def numbers_of(images: int, per_replica: int, replicas: int, epochs: int) -> dict[str, int]:
    """The four numbers of a mirrored training, by name."""
    global_batch = per_replica * replicas
    steps = -(-images // global_batch)
    return dict(zip(NUMBERS, (global_batch, steps, steps * epochs, images - (steps - 1) * global_batch), strict=True))


def _mistaken(case: Case) -> dict[str, list[tuple[int, str]]]:
    """For each number, what usual mistakes give, with their hints."""
    images, per_replica, replicas, epochs = case
    true = numbers_of(*case)
    size, steps = true["global batch size"], true["steps per epoch"]
    small_steps = -(-images // per_replica)
    return {
        "global batch size": [
            (per_replica, "that is what one replica gets. How many images does one update see?"),
            (per_replica // replicas, "the strategy divides the global batch; so is it larger or smaller than a part?"),
        ],
        "steps per epoch": [
            (images // size, "the rest that does not fill a batch is trained on too."),
            (small_steps, "a step uses up one batch of each replica at the same time."),
            (images // per_replica, "a step uses up one batch of each replica, and the rest is trained on too."),
            (images, "a step is an update, not an image."),
        ],
        "updates": [
            (steps, "that is one epoch."),
            (steps * epochs * replicas, "the replicas make each update together: it counts once."),
            (images // size * epochs, "each epoch has one step more, for the rest."),
            (small_steps * epochs, "count the steps with the global batch."),
        ],
        "images in the last batch": [
            (0, "if nothing is left over, the last batch is a full one."),
            (images % per_replica, "the rest after global batches is asked for."),
            (size, "what is left after the full batches?"),
            (-(-true["images in the last batch"] // replicas), "that is one replica's part of it."),
        ],
    }


def judge_numbers(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A quarter of the points for each number that is right in every case."""
    replicas, per_replica = int(generator.integers(3, 9)), int(generator.integers(20, 60))
    full = int(generator.integers(5, 12)) * replicas * per_replica
    cases = [
        (full + int(generator.integers(per_replica + 1, 2 * per_replica)), per_replica, replicas, 4),
        (full, per_replica, replicas, int(generator.integers(2, 9))),
        (per_replica - 3, per_replica, replicas, 3),
    ]
    hints: dict[str, Verdict] = {}
    for case in cases:
        given = answer.call("numbers", *case)
        if not isinstance(given, dict) or not set(NUMBERS) <= set(given):
            return wrong(f"`numbers` gives a dictionary with the names {', '.join(NUMBERS)}.")
        for name, true in numbers_of(*case).items():
            if name not in hints and (not isinstance(given[name], (int, float)) or given[name] != true):
                hints[name] = _verdict_on_number(given[name], name, case)
    return parts({name: hints.get(name, right()) for name in NUMBERS})


def _verdict_on_number(given: object, name: str, case: Case) -> Verdict:
    if given is None or given is ...:
        return not_done()
    where = "{:,} images, {} per replica, {} replicas, {} epochs".format(*case)
    if not isinstance(given, (int, float)):
        return wrong("a number is wanted.")
    for value, hint in _mistaken(case)[name]:
        if given == value:
            return wrong(f"{given} for {where}: {hint}")
    return wrong(f"{given} for {where} is not right. Draw the batches as boxes on a line.")


def judge_mirrored(answer: Answer, generator: np.random.Generator) -> Verdict:
    """Train on equal batches, then with a rest; compare with NumPy and look at variables and batches."""
    per_replica = int(generator.integers(6, 12))
    weights = drawn_weights(generator)
    for rest in (0, 3):
        images, labels = drawn_batch(generator, 4 * REPLICAS * per_replica + rest)
        try:
            seen = answer.inside(training.train_and_look, images, labels, weights, per_replica)
        except Raised as error:
            return wrong(_hint_of_raised(error))
        if seen["problem"]:
            return _verdict_on_form(seen["problem"])
        hint = _hint_of_batches(seen, labels, per_replica, rest)
        if hint:
            return wrong(hint)
        if hint := _hint_of_model(seen) or _hint_of_weights(seen, images, labels, weights, per_replica):
            return wrong(hint, 0.5)
    return right("Every variable is on both devices, each gets its images, and the weights are those of one device.")


def _verdict_on_form(problem: str) -> Verdict:
    if problem in ("missing", "nothing"):
        return not_done("`mirrored` gives nothing")
    return wrong(
        {
            "another strategy": "`strategy` is not the mirrored strategy any more that the lab has made.",
            "not a pair": "`mirrored` returns two things, the model and the batches it was trained on.",
            "no model": "The first thing that `mirrored` returns is not a Keras model.",
            "no batches": "The second thing that `mirrored` returns is not a tf.data.Dataset.",
        }[problem]
    )


def _hint_of_raised(error: Raised) -> str:
    if "scope" in error.message:
        return "TensorFlow says that a variable and its use belong to different scopes: what has to be made inside?"
    lines = [line.strip() for line in error.message.splitlines() if line.strip()]  # TensorFlow's reason comes last
    return f"`mirrored` raises {error.kind}: {lines[-1][:300] if lines else 'without a word'}"


def _hint_of_batches(seen: Mapping, labels: np.ndarray, per_replica: int, rest: int) -> str | None:
    replicas, of_steps = seen["replicas"], seen["parts"]
    first = of_steps[0] if of_steps else []
    if min(seen["copies"], default=0) < replicas:
        return "The weights exist once, on one device: nothing is mirrored. Where do they have to be made?"
    if sum(first) == per_replica:
        return (
            f"Each replica gets {first} images instead of {per_replica}: the strategy divides what batch(...) says. "
            "Which batch size is that?"
        )
    if sum(first) > per_replica * replicas:
        return f"Each replica gets {first} images instead of {per_replica}: multiplied once too often."
    if first != [per_replica] * replicas:
        return f"Each replica gets {first} images instead of {per_replica}."
    if rest and len(seen["labels"]) == len(labels) - rest:
        return f"{rest} of {len(labels)} images are never seen: the last, smaller batch is dropped."
    if len(seen["labels"]) != len(labels):
        return f"The batches hold {len(seen['labels'])} images, and there are {len(labels)}: each is wanted once."
    if not np.array_equal(seen["labels"], labels):
        return "The images come in another order than in the serial program, so that the results cannot be compared."
    return None


def _hint_of_model(seen: Mapping) -> str | None:
    if seen["dropout"]:
        return "The model drops units at random, so that no two runs are equal. The serial program does without."
    if not seen["from_logits"]:
        return "The model gives logits, and the loss takes them for probabilities: keep the serial program's loss."
    if seen["optimizer"] not in ("SGD", "NoneType"):
        return f"The optimizer is {seen['optimizer']}; the serial program uses another one."
    steps = len(seen["parts"])
    if seen["updates"] not in (-1, steps):
        return f"There were {seen['updates']} updates, and one pass over these batches has {steps}."
    return None


def _hint_of_weights(
    seen: Mapping, images: np.ndarray, labels: np.ndarray, weights: Weights, per_replica: int
) -> str | None:
    replicas = seen["replicas"]
    size = per_replica * replicas
    batches = training.global_batches(images, labels, size)

    def are(wanted: Weights) -> bool:
        pairs = zip(seen["weights"], wanted, strict=False)
        return len(seen["weights"]) == len(wanted) and all(
            np.shape(one) == np.shape(other) and np.allclose(one, other, atol=TOLERANCE, rtol=0) for one, other in pairs
        )

    right_ones = [
        training.by_fit(weights, batches, replicas),
        training.serially(weights, batches),
        training.by_constant(weights, batches, size),
    ]
    if any(map(are, right_ones)):
        return None
    if are(weights):
        return "The weights are the first ones still: nothing was trained."
    for factor, hint in (
        (replicas, "long by the number of replicas: is something added up, or scaled, that is a mean already?"),
        (1 / replicas, "short by the number of replicas: is something divided twice?"),
    ):
        if are(training.by_fit(weights, batches, replicas, factor * training.RATE)):
            return f"Each step is too {hint}"
    return (
        "The weights are not those of the serial run. Does the model begin with the first weights that it was "
        "given, and is the learning rate the same?"
    )


LAB = Lab(
    "03_mirrored_strategy",
    [
        Exercise("numbers", 4, judge_numbers),
        Exercise("mirrored", 6, judge_mirrored),
        Exercise("samples_seen", 5, judge_samples),
    ],
    tensorflow=True,
)
