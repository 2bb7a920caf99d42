"""The exercises of lab 02: three faults of the lecture's program, diagnosed by their symptoms and fixed."""

import numpy as np

from distlab.labs.answer import Answer
from distlab.labs.answer_errors import Raised
from distlab.labs.lab import Exercise, Lab
from lab_02 import given, observe
from lab_02.given import CAUSES, SYMPTOMS
from lab_02.hints import Lab02Hint
from lab_02.observe import COMPUTING, WAITING, Batches, Evaluation, WorkTimer, WorkTiming
from distlab.labs.plain_data import Array, Plain, as_record
from distlab.labs.reference_mlp import SHAPES, cross_entropy, drawn_batch, drawn_weights, logits, softmax
from distlab.labs.verdict import AnyHint, Verdict, not_done, parts, right, wrong

FAULTS = {
    "loss": "the loss takes logits for probabilities",
    "clock": "the clock counts processor time",
    "steps": "the batch size that was computed is not used",
}
"""The cause of each symptom."""

DOUBTS = {
    "the learning rate is too large": Lab02Hint.LEARNING_RATE,
    "the weights begin too large": Lab02Hint.FIRST_WEIGHTS,
    "the clock starts before the work": Lab02Hint.CLOCK_STARTS_EARLY,
    "the clock stops before the work has ended": Lab02Hint.CLOCK_STOPS_EARLY,
    "the last batch is dropped": Lab02Hint.LAST_BATCH_DROPPED,
    "the images are not shuffled": Lab02Hint.NOT_SHUFFLED,
}
"""Why the other causes cannot be behind the symptom that they seem to fit."""

COMPUTES = 0.1  # seconds of a core
TOLERANCE = 5e-3  # a GPU multiplies with ten bits of a float's mantissa unless told otherwise


def judge_diagnosis(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A third of the points for each symptom that has its cause."""
    diagnosis = answer.value("diagnosis")
    if not isinstance(diagnosis, dict):
        return wrong(Lab02Hint.NO_DICTIONARY)
    return parts({symptom: _verdict_on_cause(symptom, diagnosis.get(symptom)) for symptom in SYMPTOMS})


def _verdict_on_cause(symptom: str, cause: Plain) -> Verdict:
    if cause is None or (isinstance(cause, str) and not cause):
        return not_done()
    if not isinstance(cause, str) or cause not in CAUSES:
        return wrong(Lab02Hint.NOT_IN_THE_LIST.says(cause=cause))
    if cause == FAULTS[symptom]:
        return right()
    return wrong(DOUBTS.get(cause) or Lab02Hint.ANOTHER_SYMPTOM.says(symptom=SYMPTOMS[symptom]))


def judge_model(answer: Answer, generator: np.random.Generator) -> Verdict:
    """The loss of the student's model with hidden weights on hidden images, against NumPy; and of an untrained one."""
    weights = drawn_weights(generator)
    images, labels = drawn_batch(generator, 40)
    try:
        evaluation = as_record(answer.inside(observe.evaluate, images, labels, weights), Evaluation)
    except Raised as error:
        return wrong(_hint_of_raised(error))
    if evaluation.problem == observe.ANOTHER_TYPE:
        if evaluation.is_of_keras_3:
            return wrong(Lab02Hint.KERAS_3)
        return wrong(Lab02Hint.NO_MODEL.says(kind=evaluation.kind))
    if evaluation.problem:
        return not_done("`make_model` gives nothing")
    if [tuple(shape) for shape in evaluation.shapes] != SHAPES:
        shapes = ", ".join(str(tuple(shape)) for shape in evaluation.shapes)
        return wrong(Lab02Hint.ANOTHER_NETWORK.says(shapes=shapes))
    scores = logits(weights, images)
    probabilities = softmax(scores)
    gives_logits = np.allclose(evaluation.outputs, scores, atol=TOLERANCE)
    if not gives_logits and not np.allclose(evaluation.outputs, probabilities, atol=TOLERANCE):
        linear = (images.reshape(len(images), -1) @ weights[0] + weights[1]) @ weights[2] + weights[3]
        if any(np.allclose(evaluation.outputs, outputs, atol=TOLERANCE) for outputs in (linear, softmax(linear))):
            return wrong(Lab02Hint.NO_RELU)
        are_shares = np.allclose(evaluation.outputs.sum(axis=1), 1, atol=TOLERANCE)
        return wrong(Lab02Hint.SOFTMAX_TWICE if are_shares else Lab02Hint.ANOTHER_LAST_LAYER)
    if not gives_logits and evaluation.from_logits:
        return wrong(Lab02Hint.SOFTMAX_AND_FROM_LOGITS, 0.5)
    expected = cross_entropy(probabilities, labels)
    if abs(evaluation.loss - expected) < TOLERANCE:
        if not np.allclose(evaluation.dropout, [0.2]) or len(evaluation.dropout) != 1:
            rates = " and ".join(f"{rate:.0%}" for rate in evaluation.dropout) or "none"
            return wrong(Lab02Hint.ANOTHER_DROPOUT.says(rates=rates), 0.5)
        if evaluation.optimizer != "Adam" or not np.isclose(evaluation.rate, 1e-3):
            optimizer = f"{evaluation.optimizer} with a rate of {evaluation.rate:g}"
            return wrong(Lab02Hint.ANOTHER_OPTIMIZER.says(optimizer=optimizer), 0.5)
        return right("With fixed weights the loss is the cross-entropy that NumPy finds, so that it begins near ln 10.")
    if abs(evaluation.loss - _loss_of_logits_as_probabilities(scores, labels)) < 0.01:
        hint, untrained = Lab02Hint.LOGITS_AS_PROBABILITIES, evaluation.untrained
        return wrong(hint.says(loss=evaluation.loss, expected=expected, untrained=untrained))
    return wrong(Lab02Hint.ANOTHER_LOSS.says(loss=evaluation.loss, expected=expected))


def _hint_of_raised(error: Raised) -> AnyHint:
    lines = [line.strip() for line in error.message.splitlines() if line.strip()]  # TensorFlow's reason comes last
    reason = f" ({lines[-1][:160]})" if lines else ""
    if "incompatible" in error.message or "rank" in error.message or "same shape" in error.message:
        return Lab02Hint.WRONG_LABELS.says(reason=reason)
    if "compile" in error.message:
        return Lab02Hint.NOT_COMPILED
    return Lab02Hint.MODEL_RAISED.says(kind=error.kind, reason=reason)


def _loss_of_logits_as_probabilities(scores: Array, labels: Array) -> float:
    """What Keras makes of logits with from_logits=False: it clips them to [1e-7, 1 − 1e-7], as if they were shares."""
    clipped = np.clip(scores, 1e-7, 1 - 1e-7)
    return cross_entropy(clipped / clipped.sum(axis=1, keepdims=True), labels)


def judge_seconds(answer: Answer, generator: np.random.Generator) -> Verdict:
    """Let the student's clock time work that waits, and work that computes; a clock of the judge's runs too."""
    timer = WorkTimer(float(generator.uniform(0.3, 0.5)), COMPUTES)
    seconds = answer.inside(observe.time_work, respond=timer)
    if not isinstance(seconds, dict) or WAITING not in seconds:
        return not_done("there is no `elapsed_seconds` yet: run the cell above")
    if seconds[WAITING] is None:
        return not_done("`elapsed_seconds` gives None: is a `return` missing?")
    for kind, timing in timer.timings.items():
        if hint := _hint_of_seconds(seconds.get(kind), timing, seconds.get(COMPUTING)):
            return wrong(hint)
    return right("Waiting counts, as on the clock on the wall.")


def _hint_of_seconds(seconds: Plain, timing: WorkTiming, of_computing: Plain) -> AnyHint | None:
    expected, whole = timing.inside, timing.outside
    if timing.calls != 1:
        return Lab02Hint.WORK_NOT_ONCE.says(calls=timing.calls)
    if not isinstance(seconds, (int, float)) or isinstance(seconds, bool):
        return Lab02Hint.NO_SECONDS.says(seconds=seconds)

    def is_elapsed(seconds: float) -> bool:
        """Whether the two looks at a clock, perhaps a coarse one, lay within the call and around the work."""
        return expected - 0.02 <= seconds <= whole + 0.02

    if is_elapsed(seconds):
        return None
    if is_elapsed(-seconds):
        return Lab02Hint.NEGATIVE
    if is_elapsed(seconds / 1e3) or is_elapsed(seconds / 1e9):
        return Lab02Hint.ANOTHER_UNIT.says(seconds=seconds, expected=expected)
    if isinstance(seconds, int):
        return Lab02Hint.WHOLE_SECONDS.says(seconds=seconds, expected=expected)
    if 0 <= seconds < expected:
        sees_computing = isinstance(of_computing, float) and of_computing > COMPUTES / 2
        hint = Lab02Hint.CLOCK_STANDS_STILL if sees_computing else Lab02Hint.STARTS_LATE
        return hint.says(seconds=seconds, expected=expected)
    if seconds > whole:
        return Lab02Hint.TOO_LONG.says(seconds=seconds, whole=whole)
    return Lab02Hint.BELOW_ZERO.says(seconds=seconds, expected=expected)


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
            return wrong(_hint_of_form(batches))
        if hint := _hint_of_batches(batches, labels, per_replica, replicas):
            return wrong(hint, context=f"{images} images, {per_replica} for each of {replicas} replicas: ")
    return right("Twice the replicas, half the steps, and every image once.")


def _hint_of_form(batches: Batches) -> AnyHint:
    if batches.problem == observe.ANOTHER_TYPE:
        return Lab02Hint.NO_DATASET.says(kind=batches.kind)
    return Lab02Hint.NO_PAIRS if batches.problem == observe.NO_PAIRS else Lab02Hint.NO_BATCHES


def _hint_of_batches(batches: Batches, labels: Array, per_replica: int, replicas: int) -> AnyHint | None:
    sizes, count, size = batches.sizes, len(labels), per_replica * replicas
    first = sizes[0] if sizes else 0
    if batches.is_endless:
        return Lab02Hint.NEVER_ENDS
    if first == 64 != size:
        return Lab02Hint.NUMBER_FOR_NAME
    if first == per_replica != size:
        return Lab02Hint.BATCH_OF_ONE_REPLICA.says(first=first)
    if first == size * replicas != size:
        return Lab02Hint.REPLICAS_TWICE.says(first=first)
    if first != min(size, count):
        return Lab02Hint.ANOTHER_FIRST_BATCH.says(first=first)
    wrong_place = next((place for place, images in enumerate(sizes[:-1]) if images != size), None)
    if wrong_place is not None:
        return Lab02Hint.ANOTHER_BATCH.says(place=wrong_place, count=sizes[wrong_place], expected=size)
    if sum(sizes) <= count / 2 + size and count >= 3 * size:
        return Lab02Hint.SHARDED.says(seen=sum(sizes), count=count)
    if sum(sizes) < count and set(sizes) == {size}:
        return Lab02Hint.REST_LEFT_OUT.says(steps=len(sizes), rest=count - sum(sizes))
    if sum(sizes) != count or sorted(batches.labels) != sorted(labels.tolist()):
        return Lab02Hint.NOT_ONCE
    return None if batches.labels == batches.labels_of_images else Lab02Hint.LABELS_MIXED_UP


LAB = Lab(
    "02_single_device_baseline",
    [
        Exercise("diagnosis", 3, judge_diagnosis),
        Exercise("make_model", 4, judge_model),
        Exercise("elapsed_seconds", 3, judge_seconds),
        Exercise("make_batches", 3, judge_batches),
    ],
    tensorflow=True,
    given_module=given,
)
