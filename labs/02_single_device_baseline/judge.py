"""The judge of lab 02: three faults of the lecture's program, diagnosed by their symptoms and fixed.

The diagnosis is judged by known-wrong ones; models, clocks and batches are observed, and compared with NumPy.
"""

from typing import Any

import numpy as np
from lab_02 import given, observe
from lab_02.given import CAUSES, SYMPTOMS
from lab_02.observe import COMPUTING, WAITING, Batches, Evaluation, WorkTimer, WorkTiming

from distlab.labs import Answer, Exercise, Lab, Raised, Verdict, not_done, right, wrong
from distlab.labs.answer_errors import AnswerError
from distlab.labs.by_programs import ByPrograms, Mistake
from distlab.labs.plain_data import Array, Plain, as_record
from distlab.labs.reference_mlp import SHAPES, cross_entropy, drawn_batch, drawn_weights, logits, softmax

# From symptom to cause -----------------------------------------------------------------------------------------------

DIAGNOSIS = {
    "loss": "the loss takes logits for probabilities",
    "clock": "the clock counts processor time",
    "steps": "the batch size that was computed is not used",
}
DOUBTS = {
    "the learning rate is too large": (
        "the learning rate is too large: no step has been made when this loss is computed."
    ),
    "the weights begin too large": (
        "the weights begin too large: Keras draws them so that the outputs stay small. What does the loss do with the "
        "outputs?"
    ),
    "the clock starts before the work": (
        "the clock starts before the work: that is correct. What would it measure if it started later?"
    ),
    "the clock stops before the work has ended": (
        "the clock stops before the work has ended: a call ends when the work has ended. Is any time too short except "
        "that of waiting?"
    ),
    "the last batch is dropped": (
        "the last batch is dropped: that is one step fewer, and it is the same for every number of replicas."
    ),
    "the images are not shuffled": "the images are not shuffled: the order of images changes no count.",
}
"""Why the other causes cannot be behind the symptom that they seem to fit."""


def causes(answer: Answer, case: tuple[()]) -> dict[str, Any]:
    """The cause of each symptom; None where none is named yet."""
    diagnosis = answer.value("diagnosis")
    if not isinstance(diagnosis, dict):
        raise AnswerError("`diagnosis` is a dictionary: each symptom's name has a cause.")
    return {symptom: diagnosis.get(symptom) or None for symptom in SYMPTOMS}


def of_cause(case: Any, cause: Any) -> str:
    """Of a cause that belongs to another symptom, or to none."""
    if not isinstance(cause, str) or cause not in CAUSES:
        return f"{cause!r} is not in the list of causes."
    symptoms = {cause: SYMPTOMS[symptom] for symptom, cause in DIAGNOSIS.items()}
    return DOUBTS.get(cause) or f"this is a fault, and it causes another symptom: {symptoms[cause]}."


DIAGNOSED = ByPrograms(
    DIAGNOSIS,
    lambda generator: [()],
    variable="diagnosis",
    observe=causes,
    said=lambda case: "",
    parts=tuple(SYMPTOMS),
    otherwise=of_cause,
    mistakes=[
        Mistake({symptom: of_cause}, DIAGNOSIS | {symptom: cause})
        for symptom, right_cause in DIAGNOSIS.items()
        for cause in CAUSES
        if cause != right_cause
    ],
)

# The model and its loss ----------------------------------------------------------------------------------------------

TOLERANCE = 5e-3  # a GPU multiplies with ten bits of a float's mantissa unless told otherwise


def judge_model(answer: Answer, generator: np.random.Generator) -> Verdict:
    """The loss of the student's model with hidden weights on hidden images, against NumPy; and of an untrained one."""
    weights = drawn_weights(generator)
    images, labels = drawn_batch(generator, 40)
    try:
        model = as_record(answer.inside(observe.evaluate, images, labels, weights), Evaluation)
    except Raised as error:
        return wrong(hint_on_error(error))
    if model.problem == observe.ANOTHER_TYPE:
        is_keras_3 = "This model is of Keras 3. The course uses `tf.keras`: from where does yours come?"
        return wrong(is_keras_3 if model.is_of_keras_3 else f"`make_model` gives {model.kind}, not a Keras model.")
    if model.problem:
        return not_done("`make_model` gives nothing")
    if hint := hint_on_outputs(model, images, weights):
        return wrong(hint)
    scores = logits(weights, images)
    if np.allclose(model.outputs, softmax(scores), atol=TOLERANCE) and model.from_logits:
        return wrong(
            "The model gives probabilities, and the loss is told that they are logits. Keras noticed, with a warning; "
            "with another layer behind the softmax it would not notice.",
            0.5,
        )
    expected = cross_entropy(softmax(scores), labels)
    fixed = f"With fixed weights the loss is {model.loss:.2f}, and the cross-entropy is {expected:.2f}."
    clipped = np.clip(scores, 1e-7, 1 - 1e-7)  # as Keras does with what it takes for probabilities
    if abs(model.loss - cross_entropy(clipped / clipped.sum(axis=1, keepdims=True), labels)) < 0.01:
        return wrong(
            f"{fixed} Before training it is {model.untrained:.2f}, and a model that knows nothing has ln 10 = 2.30. "
            "What does the last layer give, and what does the loss expect?"
        )
    if abs(model.loss - expected) >= TOLERANCE:
        return wrong(f"{fixed} Is it a cross-entropy of the labels, over all images?")
    if not np.allclose(model.dropout, [0.2]) or len(model.dropout) != 1:
        rates = " and ".join(f"{rate:.0%}" for rate in model.dropout) or "none"
        return wrong(
            f"The lecture's network drops a fifth of the hidden units, and nothing else; here it is {rates}.", 0.5
        )
    if model.optimizer != "Adam" or not np.isclose(model.rate, 1e-3):
        used = f"{model.optimizer} with a rate of {model.rate:g}"
        return wrong(f"The lecture compiles with Adam and its usual rate; here it is {used}.", 0.5)
    return right("With fixed weights the loss is the cross-entropy that NumPy finds, so that it begins near ln 10.")


def hint_on_outputs(model: Evaluation, images: Array, weights: list[Array]) -> str | None:
    """Where the model gives neither logits nor their softmax."""
    if [tuple(shape) for shape in model.shapes] != SHAPES:
        shapes = ", ".join(str(tuple(shape)) for shape in model.shapes)
        of_lecture = "Those of the lecture belong to 784 pixels, 128 units and 10 outputs."
        return f"The weights have the shapes {shapes}. {of_lecture}"
    scores = logits(weights, images)
    linear = (images.reshape(len(images), -1) @ weights[0] + weights[1]) @ weights[2] + weights[3]
    if any(np.allclose(model.outputs, outputs, atol=TOLERANCE) for outputs in (scores, softmax(scores))):
        return None
    if any(np.allclose(model.outputs, outputs, atol=TOLERANCE) for outputs in (linear, softmax(linear))):
        return "The outputs are those of a network without ReLU: what does the lecture's hidden layer do with its sums?"
    if np.allclose(model.outputs.sum(axis=1), 1, atol=TOLERANCE):
        return "The model's outputs are probabilities, but flatter than they should be. Is there only one softmax?"
    return "The model's outputs are neither the ten logits nor their softmax. What does the last layer do?"


def hint_on_error(error: Raised) -> str:
    """Of TensorFlow's long messages the reason, which comes last."""
    lines = [line.strip() for line in error.message.splitlines() if line.strip()]
    reason = f" ({lines[-1][:160]})" if lines else ""
    if "incompatible" in error.message or "rank" in error.message or "same shape" in error.message:
        return f"The loss does not fit the labels{reason}. They are numbers from 0 to 9, not rows of ten."
    if "compile" in error.message:
        return "The model is not compiled, so it has no loss."
    return f"`make_model` or its use raises {error.kind}{reason}."


# The clock -----------------------------------------------------------------------------------------------------------

COMPUTES = 0.1  # seconds of a core


def judge_seconds(answer: Answer, generator: np.random.Generator) -> Verdict:
    """Let the student's clock time work that waits, and work that computes; a clock of the judge's runs too."""
    timer = WorkTimer(float(generator.uniform(0.3, 0.5)), COMPUTES)
    seconds = answer.inside(observe.time_work, respond=timer)
    if not isinstance(seconds, dict) or WAITING not in seconds:
        return not_done("there is no `elapsed_seconds` yet: run the cell above")
    if seconds[WAITING] is None:
        return not_done("`elapsed_seconds` gives None: is a `return` missing?")
    for kind, timing in timer.timings.items():
        if hint := hint_on_seconds(seconds.get(kind), timing, seconds.get(COMPUTING)):
            return wrong(hint)
    return right("Waiting counts, as on the clock on the wall.")


def hint_on_seconds(seconds: Plain, timing: WorkTiming, of_computing: Plain) -> str | None:
    """Where a time is none of the work; it may be that of two looks at a coarse clock."""
    expected, whole = timing.inside, timing.outside
    if timing.calls != 1:
        return f"The work was done {timing.calls} times. Do it once, between two readings of the clock."
    if not isinstance(seconds, (int, float)) or isinstance(seconds, bool):
        return f"{seconds!r} is not a number of seconds."

    def is_elapsed(seconds: float) -> bool:
        return expected - 0.02 <= seconds <= whole + 0.02

    if is_elapsed(seconds):
        return None
    if is_elapsed(-seconds):
        return "The number is negative: the later time was subtracted from the earlier one."
    if is_elapsed(seconds / 1e3) or is_elapsed(seconds / 1e9):
        return f"{seconds:.0f} for work of {expected:.2f} s: the unit must be seconds."
    if isinstance(seconds, int):
        return f"{seconds} for work of {expected:.2f} s: the fraction of the second is lost."
    if seconds > whole:
        return f"{seconds:.2f} s, and the whole call took {whole:.2f} s. From which moment does it count?"
    if seconds < 0:
        return f"{seconds:.2f} s for work of {expected:.2f} s: a time below zero."
    sees_computing = isinstance(of_computing, float) and of_computing > COMPUTES / 2
    why = "this clock stops while the program waits" if sees_computing else "the clock was first read too late"
    return f"{seconds:.2f} s for {expected:.2f} s of waiting: {why}."


# The batches ---------------------------------------------------------------------------------------------------------

FORMS = {
    observe.NO_PAIRS: "The data set must give pairs of images and labels.",
    observe.NO_BATCHES: "The data set gives single images, not batches.",
}


def judge_batches(answer: Answer, generator: np.random.Generator) -> Verdict:
    """Batches for several numbers of replicas: their sizes, and every image once with its own label."""
    per_replica = int(generator.integers(5, 12))
    rest = int(generator.integers(1, per_replica))
    for replicas, full, more in ((2, 6, rest), (4, 6, rest), (1, 6, rest), (3, 4, 0), (2, 0, per_replica + 1)):
        images = full * per_replica * replicas + more
        labels = generator.permutation(images)
        batches = as_record(answer.inside(observe.take_batches, labels, per_replica, replicas), Batches)
        if batches.problem in (observe.MISSING, observe.NOTHING):
            return not_done("`make_batches` gives nothing")
        if batches.problem:
            return wrong(FORMS.get(batches.problem) or f"`make_batches` gives {batches.kind}, not a tf.data.Dataset.")
        if hint := hint_on_batches(batches, labels, per_replica, replicas):
            return wrong(hint, context=f"{images} images, {per_replica} for each of {replicas} replicas: ")
    return right("Twice the replicas, half the steps, and every image once.")


def hint_on_batches(batches: Batches, labels: Array, per_replica: int, replicas: int) -> str | None:
    """Where a batch has another size, or images are missing."""
    sizes, count, size = batches.sizes, len(labels), per_replica * replicas
    first, seen = sizes[0] if sizes else 0, sum(sizes)
    if batches.is_endless:
        return "the data set never ends; an epoch is one pass."
    if first == 64 != size:
        return "batches of 64. Where does the program use a number instead of a name?"
    if first == per_replica != size:
        return f"batches of {first} in all, and the strategy will divide them once more."
    if first == size * replicas != size:
        return f"batches of {first}: the number of replicas is multiplied twice."
    if first != min(size, count):
        return f"the first batch has {first} images. How many does one step need, over all replicas?"
    place = next((place for place, images in enumerate(sizes[:-1]) if images != size), None)
    if place is not None:
        return f"batch {place} has {sizes[place]} images, and {size} are needed. Are all batches made alike?"
    if seen <= count / 2 + size and count >= 3 * size:
        return f"only {seen} of {count} images come. The strategy divides each batch itself: who else divides here?"
    if seen < count and set(sizes) == {size}:
        return f"{len(sizes)} steps; {count - seen} images are left out in every epoch."
    if sorted(batches.labels) != sorted(labels.tolist()):
        return "not every image comes once."
    if batches.labels != batches.labels_of_images:
        return "images and labels no longer belong together. What was shuffled separately?"
    return None


LAB = Lab(
    "02_single_device_baseline",
    [
        Exercise("diagnosis", 3, DIAGNOSED),
        Exercise("make_model", 4, judge_model),
        Exercise("elapsed_seconds", 3, judge_seconds),
        Exercise("make_batches", 3, judge_batches),
    ],
    tensorflow=True,
    given_module=given,
)
