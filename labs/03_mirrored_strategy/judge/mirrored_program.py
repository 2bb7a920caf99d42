"""Exercise `mirrored` of lab 03: a serial program made mirrored, compared with NumPy's training."""

import numpy as np
from lab_03 import observe
from lab_03.hints import Lab03Hint
from lab_03.observe import MirroredTraining

from distlab.labs.answer import Answer
from distlab.labs.answer_errors import Raised
from distlab.labs.plain_data import Array, as_record
from distlab.labs.reference_mlp import Weights, drawn_batch, drawn_weights
from distlab.labs.verdict import AnyHint, Verdict, not_done, right, wrong

TOLERANCE = 1e-4  # a GPU multiplies with ten bits of a float's mantissa unless told otherwise
REPLICAS = 2  # the lab's strategy has two devices


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
