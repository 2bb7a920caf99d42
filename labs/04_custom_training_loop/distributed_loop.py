"""The exercise of lab 04 that trains: a distributed loop is observed, and compared with loops in NumPy.

The right loop in NumPy gives the weights of the serial program, and known-wrong ones those of frequent mistakes.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from lab_04 import observe
from lab_04.observe import DistributedLoop

from distlab.labs import Answer, Raised, Verdict, not_done, reference_mlp, right, wrong
from distlab.labs.plain_data import as_record
from distlab.labs.reference_mlp import Batch, Weights
from distlab.labs.verdict import parts, waiting_for

L2, RATE, MOMENTUM = 0.05, 0.1, 0.9  # of the lab's serial program
CLOSE = 1e-4  # a GPU multiplies with ten bits of a float's mantissa unless told otherwise
OPTIMIZER = f"SGD({RATE:g}, momentum={MOMENTUM:g})"
VARIABLES, PARTS, WEIGHTS, LOGGED = ("variables", "parts of a batch", "weights", "losses")
CASES = ((3, 2, ""), (1, 2, "With one image in the last batch: "), (2, 1, "With a strategy of one replica: "))
"""Images in the last batch, replicas, and what is said before a hint."""
OWN_MEAN = "each replica has the mean of its own images. The strategy adds: what is the sum of means?"
MEAN_OF_MEANS = "this is the mean of the replicas' means. Does an image in a small part count as much as the others?"
FULL_BATCH = "the last batch is divided by the size of a full one. How many images has it?"
FULL_PART = "the loss is divided by the images of a full part. The strategy adds: whose images are in the mean?"
MEAN_COUNT = "the loss is divided by the images that a replica has on average. How many are there on all of them?"
TWICE = "the loss is divided by all images, and then by the replicas again. The strategy adds."
DIVISORS: dict[str, Callable[[int, int, int, int], float]] = {
    "": lambda count, own, full, replicas: count,
    OWN_MEAN: lambda count, own, full, replicas: own,
    MEAN_OF_MEANS: lambda count, own, full, replicas: own * replicas,
    FULL_BATCH: lambda count, own, full, replicas: full,
    FULL_PART: lambda count, own, full, replicas: full / replicas,
    MEAN_COUNT: lambda count, own, full, replicas: count / replicas,
    TWICE: lambda count, own, full, replicas: count * replicas,
    "the losses are added, and nothing divides the sum.": lambda count, own, full, replicas: 1,
}
"""By hint, by what a replica divides the sum of its losses: all images, its own, those of a full batch, replicas."""
WHOLE_PENALTY = "each replica adds the whole penalty. How often is it in the sum?"
PENALTIES: dict[str, Callable[[int, int], float]] = {
    "": lambda count, replicas: 1,
    WHOLE_PENALTY: lambda count, replicas: replicas,
    "the penalty is missing. `fit` adds `model.losses` by itself; who does it here?": lambda count, replicas: 0,
    "the penalty is divided by the images. It depends on none: how many replicas add it?": (
        lambda count, replicas: replicas / count
    ),
    "the penalty is divided by the replicas twice. What does `scale_regularization_loss` do?": (
        lambda count, replicas: 1 / replicas
    ),
}
"""By hint, how often the penalty is in the sum over the replicas, of all images and the replicas."""
ERRORS = {
    "colocate_vars_with": "A variable of the model does not belong to the strategy. Where must it be created?",
    "handle is not available": (
        "The step must run on each replica, and here it runs once, outside of them. What does `strategy.run` do?"
    ),
    "None cannot be reduced": "What each replica returns is None. Does the replica's step reach a `return`?",
    "losses.Reduction": (
        "Keras's loss object would divide by the replica's own images. Which reduction leaves that to you?"
    ),
    "positional args must be": "`strategy.run` takes the arguments of the step as one tuple, `args=(…)`.",
    "PerReplica": (
        "A `PerReplica` value, which has a part for each replica, is used as if it were one. What works on the parts "
        "before `strategy.run` returns, and what makes one number of them after it?"
    ),
    "not well defined for a symbolic": (
        "While a graph is recorded nobody knows how many images come. Which operation counts?"
    ),
    "Collective ops is aborted": (
        "The exchange between the replicas was aborted; so it is when two strategies share the devices. Restart the "
        "kernel, and make the strategy only once."
    ),
    "same dtype": "A number of images is an integer, and losses are floats. What makes one of the other?",
}
"""Parts of TensorFlow's messages."""
ADDED_TWICE = (
    "the gradients are {replicas} times too large, and the loss is right: they are added twice. What does "
    "`apply_gradients` do with the gradients of the replicas?"
)
SCOPE = "The {} variables exist once, on one device: nothing is mirrored. Where must they be created?"


def judge_distributed(answer: Answer, generator: np.random.Generator) -> Verdict:
    """Train with two uneven last batches and on one replica; the first run that is not right is told."""
    weights, size = reference_mlp.drawn_weights(generator), int(generator.choice([6, 8, 10]))
    for rest, replicas, context in CASES:
        images, labels = reference_mlp.drawn_batch(generator, 3 * size + rest)
        try:
            observed = answer.inside(observe.train_and_observe, images, labels, weights, size, replicas)
        except Raised as error:
            return wrong(hint_on_error(error), context=context)
        if observed is None:
            return not_done("`distributed` gives nothing")
        if isinstance(observed, str):
            return wrong(observed, context=context)
        loop = as_record(observed, DistributedLoop, "what `distributed` returns")
        batches = [(images[at : at + size], labels[at : at + size]) for at in range(0, len(images), size)]
        verdict = parts(verdicts_on(loop, batches, weights))
        if not verdict.is_right:
            return replace(verdict, hint=verdict.text, context=context, parts=())
    return right("Two replicas, each with its part, train what one device trains, and log its losses.")


def hint_on_error(error: Raised) -> str:
    """Of TensorFlow's long messages a known part, or the reason, which comes last."""
    lines = [line.strip() for line in error.message.splitlines() if line.strip()]
    said = f"`distributed` raises {error.kind}: {lines[-1][:300] if lines else 'no message'}"
    return next((f"{hint} ({error.kind})" for part, hint in ERRORS.items() if part in error.message), said)


def verdicts_on(loop: DistributedLoop, batches: list[Batch], weights: Weights) -> dict[str, Verdict]:
    """By part."""
    hints = {VARIABLES: None, PARTS: None, WEIGHTS: None, LOGGED: None}
    if min(loop.copies, default=0) < loop.replicas:
        hints[VARIABLES] = SCOPE.format("model's")
    elif min(loop.optimizer_copies, default=loop.replicas) < loop.replicas:
        hints[VARIABLES] = SCOPE.format("optimizer's")
    elif (copies := max(loop.copies)) > loop.replicas:
        hints[VARIABLES] = (
            f"Each variable has {copies} copies. A function that gets a strategy uses that one: where does another "
            "come from?"
        )
    if not loop.runs:
        hints[PARTS] = "`strategy.run` is never called. What makes every replica carry out the step?"
    elif loop.undivided:
        hints[PARTS] = "Every replica gets the whole batch. What cuts a batch into parts for the replicas?"
    elif loop.first_batches and (size := len(batches[0][1])) not in loop.first_batches:
        images, first = sum(len(labels) for _, labels in batches), loop.first_batches[0]
        hints[PARTS] = (
            f"The first step has {first} images on all replicas together, and the global batch {size}: there are "
            f"{-(-images // first)} steps, and one pass has {len(batches)}. Which batch does the strategy divide?"
        )
    hints[WEIGHTS] = hint_on_weights(loop, batches, weights)
    verdicts = {part: right() if hint is None else wrong(hint) for part, hint in hints.items()}
    if not loop.runs or (hints[WEIGHTS] and (hints[VARIABLES] or hints[PARTS])):
        verdicts[WEIGHTS] = not_done("look at them again when the rest is right")
    logged = hint_on_losses(loop, batches, weights)
    are_right = loop.runs and not hints[WEIGHTS]
    verdicts[LOGGED] = waiting_for("the weights") if not are_right else wrong(logged) if logged else right()
    return verdicts


class Run(NamedTuple):
    """What a loop gives: its last weights, and by step what each replica logs: its loss and its part of the penalty."""

    weights: Weights
    logged: list[list[tuple[float, float]]]

    @property
    def losses(self) -> list[float]:
        """The sums over the replicas."""
        return [sum(map(sum, step)) for step in self.logged]


def trained(
    weights: Weights,
    batches: Sequence[Batch],
    replicas: int,
    divisor: Callable[[int, int, int, int], float] = DIVISORS[""],
    times: Callable[[int, int], float] = PENALTIES[""],
) -> Run:
    """A loop in NumPy; the replicas' losses have these divisors, and the penalty is in their sum so many times."""
    weights, velocity, logged = [np.float64(array) for array in weights], [0.0] * len(weights), []
    for images, labels in batches:
        part, step = -(-len(labels) // replicas), []
        penalties = times(len(labels), replicas) * L2
        gradients = [2 * penalties * weights[0], 0, 0, 0]
        for place in range(replicas):
            own = slice(place * part, (place + 1) * part)
            count = len(labels[own])
            loss = 0.0
            if count:
                by = divisor(len(labels), count, len(batches[0][1]), replicas)
                of_part = reference_mlp.gradient(weights, images[own], labels[own])
                gradients = [total + array / by for total, array in zip(gradients, of_part, strict=True)]
                outputs = reference_mlp.softmax(reference_mlp.logits(weights, images[own]))
                loss = count * reference_mlp.cross_entropy(outputs, labels[own]) / by
            step.append((loss, penalties * float(np.sum(weights[0] ** 2)) / replicas))
        velocity = [MOMENTUM * old - RATE * array for old, array in zip(velocity, gradients, strict=True)]
        weights = [array + change for array, change in zip(weights, velocity, strict=True)]
        logged.append(step)
    return Run(weights, logged)


def hint_on_weights(loop: DistributedLoop, batches: list[Batch], weights: Weights) -> str | None:
    """Where the weights are not those of the serial run."""

    def are(expected: Weights) -> bool:
        return all(
            np.shape(array) == np.shape(reference) and np.allclose(array, reference, atol=CLOSE, rtol=0)
            for array, reference in zip(loop.weights, expected, strict=True)
        )

    if [np.shape(array) for array in loop.weights] != reference_mlp.SHAPES:
        return "the model is not the one that `network` makes."
    if are(trained(weights, batches, loop.replicas).weights):
        return None
    if are(weights):
        return "the weights are still the first ones: nothing was trained."
    if loop.differ:
        return "the copies differ: nobody adds the gradients of the replicas. What does so by default?"
    if not loop.from_logits:
        return "Keras's loss takes the outputs for probabilities, and they are logits. Which argument says so?"
    if loop.optimizer not in ("", OPTIMIZER):
        return f"the optimizer is {loop.optimizer}; the serial program has {OPTIMIZER} for the same global batches."
    twice = trained(weights, batches, loop.replicas, DIVISORS[MEAN_COUNT], PENALTIES[WHOLE_PENALTY])
    first = trained(weights, batches[:1], loop.replicas).losses
    if are(twice.weights) and np.allclose(loop.losses[:1], first, rtol=CLOSE):
        return ADDED_TWICE.format(replicas=loop.replicas)
    for said, divisor in DIVISORS.items():
        for also_said, times in PENALTIES.items():
            if are(trained(weights, batches, loop.replicas, divisor, times).weights):
                return " Besides, ".join(filter(None, (said, also_said)))
    if are(trained(weights, batches[:-1], loop.replicas).weights):
        return "the last, smaller batch is missing. Every image must be seen once."
    if (steps := loop.updates or len(loop.losses)) != len(batches):
        return f"there were {steps} steps, and one pass has {len(batches)}."
    if loop.replicas == 1:
        return "they are right with two replicas only. Is a number of replicas written into the program?"
    return (
        "they are not those of the serial run. Does the model begin with the first weights, do the images keep their "
        "order, and what divides the loss?"
    )


def hint_on_losses(loop: DistributedLoop, batches: list[Batch], weights: Weights) -> str | None:
    """Where the losses are not those of the serial run, although the weights are."""
    run = trained(weights, batches, loop.replicas)
    if len(loop.losses) != len(batches):
        return f"the list has the length {len(loop.losses)}, and one pass has {len(batches)} steps."
    if not np.isfinite(loop.losses).all():
        return "a loss is nan. A replica may have no image: what is the mean of nothing?"

    def are(expected: Sequence[float]) -> bool:
        return np.allclose(loop.losses, expected, rtol=CLOSE)

    if are(run.losses):
        return None
    if are([loss / loop.replicas for loss in run.losses]):
        return (
            "they are divided by the replicas. Each replica returns its part of the mean: which reduction do parts "
            "need?"
        )
    if are([sum(loss for loss, _ in step) for step in run.logged]):
        return "the penalty is in the training, but not in the losses. The serial program logs both."
    if any(are([sum(step[place]) for step in run.logged]) for place in range(loop.replicas)):
        return "this is what one replica returns. Where are the others' parts?"
    return f"the first loss is {loop.losses[0]:.5g}, and that of the serial run {run.losses[0]:.5g}."
