"""The exercises of lab 02: three faults of the lecture's program, named by their symptoms and mended."""

from collections.abc import Mapping

import numpy as np

from distlab.labs.answer import Answer
from distlab.labs.answer_errors import Raised
from distlab.labs.lab import Exercise, Lab
from distlab.labs.lab_02 import inside as mended
from distlab.labs.lab_02.stopwatch import COMPUTING, WAITING, Stopwatch, Timing
from distlab.labs.reference_mlp import SHAPES, cross_entropy, drawn_batch, drawn_weights, logits, softmax
from distlab.labs.verdict import Verdict, not_done, parts, right, wrong

SYMPTOMS = {
    "loss": "the loss before training is far from ln 10",
    "clock": "half a second of waiting takes next to no time",
    "steps": "with more replicas an epoch has as many steps as before",
}

CAUSES = {
    "the loss takes logits for probabilities": "loss",
    "the learning rate is too large": "",
    "the weights begin too large": "",
    "the clock counts processor time": "clock",
    "the clock starts before the work": "",
    "the clock stops before the work has ended": "",
    "the batch size that was computed is not used": "steps",
    "the last batch is dropped": "",
    "the images are not shuffled": "",
}

# Why a cause cannot be behind a symptom: by cause, for the symptom whose place it is.
DOUBTS = {
    "the learning rate is too large": "no step has been made when this loss is computed.",
    "the weights begin too large": "Keras draws them so that the outputs stay small. Look at what is done with those.",
    "the clock starts before the work": "that is as it should be; what would be measured if it did not?",
    "the clock stops before the work has ended": "a call ends when the work has. Is anything too short but waiting?",
    "the last batch is dropped": "that is one step fewer, and as many for every number of replicas.",
    "the images are not shuffled": "the order of images changes no count.",
}


COMPUTES = 0.1  # seconds of a core
TOLERANCE = 5e-3  # a GPU multiplies with ten bits of a float's mantissa unless told otherwise


def judge_diagnosis(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A third of the points for each symptom that has its cause."""
    given = answer.value("diagnosis")
    if not isinstance(given, dict):
        return wrong("`diagnosis` is a dictionary: a symptom's name gives a cause.")
    return parts({symptom: _verdict_on_cause(symptom, given.get(symptom)) for symptom in SYMPTOMS})


def _verdict_on_cause(symptom: str, cause: object) -> Verdict:
    if cause is None or cause == "":
        return not_done()
    if not isinstance(cause, str) or cause not in CAUSES:
        return wrong(f"{cause!r} is not in the list of causes.")
    if CAUSES[cause] == symptom:
        return right()
    if CAUSES[cause]:
        return wrong(f"this is a fault, but not behind this symptom: {SYMPTOMS[symptom]}.")
    return wrong(f"{cause}: {DOUBTS[cause]}")


def judge_model(answer: Answer, generator: np.random.Generator) -> Verdict:
    """The loss of the student's model with hidden weights on hidden images, against NumPy; and of an untrained one."""
    weights = drawn_weights(generator)
    images, labels = drawn_batch(generator, 40)
    try:
        seen = answer.inside(mended.evaluate, images, labels, weights)
    except Raised as error:
        return wrong(_hint_of_raised(error))
    if seen["problem"] in ("missing", "nothing"):
        return not_done("`make_model` gives nothing")
    if seen["problem"]:
        return wrong(seen["problem"])
    if [tuple(shape) for shape in seen["shapes"]] != SHAPES:
        return wrong("The layers are not the lecture's any more: 784 pixels, 128 units, 10 outputs.")
    scores = logits(weights, images)
    probabilities = softmax(scores)
    gives_logits = np.allclose(seen["output"], scores, atol=TOLERANCE)
    if not gives_logits and not np.allclose(seen["output"], probabilities, atol=TOLERANCE):
        if np.allclose(seen["output"].sum(axis=1), 1, atol=TOLERANCE):
            return wrong(
                "The model's outputs are probabilities, but flatter than they should be: is there one softmax?"
            )
        return wrong("The model's outputs are neither the ten logits nor their softmax. What does the last layer do?")
    true = cross_entropy(probabilities, labels)
    if not gives_logits and seen["from_logits"]:
        return wrong(
            "The model gives probabilities, and the loss is told that they are logits. Keras noticed, with a warning; "
            "behind another layer it would not have.",
            0.5,
        )
    if abs(seen["loss"] - true) < TOLERANCE:
        return right("With fixed weights the loss is the cross-entropy that NumPy finds, so that it begins near ln 10.")
    return wrong(_hint_of_loss(seen, true, _loss_of_logits_as_probabilities(scores, labels)))


def _hint_of_raised(error: Raised) -> str:
    lines = [line.strip() for line in error.message.splitlines() if line.strip()]  # TensorFlow's reason comes last
    said = f" ({lines[-1][:160]})" if lines else ""
    if "incompatible" in error.message or "rank" in error.message or "same shape" in error.message:
        return f"The loss does not fit the labels{said}. They are numbers from 0 to 9, not rows of ten."
    if "compile" in error.message:
        return "The model is not compiled, so that it has no loss."
    return f"`make_model` or its use raises {error.kind}{said}."


def _loss_of_logits_as_probabilities(scores: np.ndarray, labels: np.ndarray) -> float:
    """What Keras makes of logits with from_logits=False: it clips them to [1e-7, 1 − 1e-7], as if they were shares."""
    clipped = np.clip(scores, 1e-7, 1 - 1e-7)
    return cross_entropy(clipped / clipped.sum(axis=1, keepdims=True), labels)


def _hint_of_loss(seen: Mapping, true: float, of_fault: float) -> str:
    here = f"With fixed weights the loss is {seen['loss']:.2f}, and the cross-entropy is {true:.2f}."
    if abs(seen["loss"] - of_fault) < 0.01:
        return (
            f"{here} Before training it is {seen['untrained']:.2f}, and a model that knows nothing has ln 10 = "
            f"{np.log(10):.2f}. What does the last layer give, and what does the loss take it for?"
        )
    return f"{here} Is it a cross-entropy of the labels, over all images?"


def judge_seconds(answer: Answer, generator: np.random.Generator) -> Verdict:
    """Let the student's clock time work that waits, and work that computes; a clock of the judge's runs too."""
    watch = Stopwatch(float(generator.uniform(0.3, 0.5)), COMPUTES)
    given = answer.inside(mended.time_work, respond=watch)
    if not given:
        return not_done("there is no `elapsed_seconds` yet: run the cell above")
    if given[WAITING] is None:
        return not_done("`elapsed_seconds` gives None: is a `return` missing?")
    for kind, timing in watch.timings.items():
        if hint := _hint_of_seconds(given[kind], timing, given[COMPUTING]):
            return wrong(hint)
    return right("Waiting counts, as on the clock on the wall.")


def _hint_of_seconds(given: object, timing: Timing, of_computing: object) -> str | None:
    inside, outside = timing.inside, timing.outside
    if timing.calls != 1:
        return f"The work was done {timing.calls} times. It is to be done once, between two looks at the clock."
    if not isinstance(given, (int, float)) or isinstance(given, bool):
        return f"A number of seconds is wanted, not {given!r}."

    def is_elapsed(seconds: float) -> bool:
        """Whether the two looks at a clock, perhaps a coarse one, lay within the call and around the work."""
        return inside - 0.02 <= seconds <= outside + 0.02

    if is_elapsed(given):
        return None
    if is_elapsed(-given):
        return "The number is negative: the later look at the clock was taken from the earlier one."
    if is_elapsed(given / 1e3) or is_elapsed(given / 1e9):
        return f"{given:.0f} for work of {inside:.2f} s: seconds are wanted."
    if isinstance(given, int):
        return f"{given} for work of {inside:.2f} s: the fraction of the second is lost."
    if 0 <= given < inside:
        sees_computing = isinstance(of_computing, float) and of_computing > COMPUTES / 2
        why = "this clock stands still meanwhile" if sees_computing else "the first look at the clock comes too late"
        return f"{given:.2f} s for {inside:.2f} s of waiting: {why}."
    if given > outside:
        return f"{given:.2f} s, and the whole call took {outside:.2f} s. From which moment does it count?"
    return f"{given:.2f} s for work of {inside:.2f} s: a time below zero."


def judge_batches(answer: Answer, generator: np.random.Generator) -> Verdict:
    """Batches for several numbers of replicas: their sizes, and every image once with its own label."""
    per_replica = int(generator.integers(5, 12))
    for replicas in (2, 4, 1):
        images = 6 * per_replica * replicas + int(generator.integers(1, per_replica))
        labels = generator.permutation(images)
        seen = answer.inside(mended.take_batches, labels, per_replica, replicas)
        if seen["problem"] in ("missing", "nothing"):
            return not_done("`make_batches` gives nothing")
        if seen["problem"]:
            return wrong(seen["problem"])
        if hint := _hint_of_batches(seen, labels, per_replica, replicas):
            return wrong(f"{images} images, {per_replica} for each of {replicas} replicas: {hint}")
    return right("Twice the replicas, half the steps, and every image once.")


def _hint_of_batches(seen: Mapping, labels: np.ndarray, per_replica: int, replicas: int) -> str | None:
    sizes, count, size = seen["sizes"], len(labels), per_replica * replicas
    if seen["endless"]:
        return "the data set never ends; an epoch is one pass."
    first = sizes[0] if sizes else 0
    if first == 64 != size:
        return "batches of 64: a number stands where a name should."
    if first == per_replica != size:
        return f"batches of {first} in all, and the strategy will divide them once more."
    if first == size * replicas != size:
        return f"batches of {first}: the number of replicas comes in twice."
    if first != min(size, count):
        return f"the first batch has {first} images. How many does one step use up, over all replicas?"
    if sum(sizes) < count and set(sizes) == {size}:
        return f"{len(sizes)} steps; {count - sum(sizes)} images are left out in every epoch."
    if sum(sizes) != count or sorted(seen["labels"]) != sorted(labels.tolist()):
        return "not every image comes once."
    if seen["labels"] != seen["of_images"]:
        return "images and labels do not belong together any more. What was shuffled apart?"
    return None


LAB = Lab(
    "02_single_device_baseline",
    [
        Exercise("diagnosis", 3, judge_diagnosis),
        Exercise("make_model", 4, judge_model),
        Exercise("elapsed_seconds", 3, judge_seconds),
        Exercise("make_batches", 3, judge_batches),
    ],
    tensorflow=True,
)
