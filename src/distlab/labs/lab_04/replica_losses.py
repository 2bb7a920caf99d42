"""What each replica gives as its loss when the strategy adds, without and with a penalty: two exercises of lab 04."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from distlab.labs.answer import Answer
from distlab.labs.lab_04 import replica_values
from distlab.labs.lab_04.hints import Lab04Hint
from distlab.labs.lab_04.replica_values import Case, Values
from distlab.labs.verdict import AnyHint, Verdict

FULL, UNEVEN, EMPTY = "a full batch", "an uneven last batch", "a replica without examples"

Losses = list[NDArray[np.float64]]
"""The losses of single examples, an array of shape (examples,) for each replica."""


class GlobalBatch(NamedTuple):
    """The part of the exercise that it belongs to, and the losses on each replica."""

    part: str
    losses: Losses

    @property
    def examples(self) -> int:
        """On all replicas together."""
        return sum(map(len, self.losses))

    def __str__(self) -> str:
        return f"{replica_values.listed([len(losses) for losses in self.losses])} examples"


EXAMPLE = GlobalBatch(UNEVEN, [np.array([1.0, 2.0, 6.0]), np.array([7.0])])
PENALTY_EXAMPLE = 0.5


def replica_losses(losses: Losses) -> list[float]:
    """Each replica's part of the mean over all examples, as `tf.nn.compute_average_loss` gives it."""
    examples = sum(map(len, losses))
    return [float(np.sum(own)) / examples for own in losses]


def with_penalty(losses: Losses, penalty: float) -> list[float]:
    """The same with the replica's part of a penalty, as `tf.nn.scale_regularization_loss` gives it."""
    return [loss + penalty / len(losses) for loss in replica_losses(losses)]


def _drawn_batches(generator: np.random.Generator) -> list[GlobalBatch]:
    """A full batch, an uneven one, and one that leaves a replica without examples.

    A replica has more examples than there are replicas in a full batch, so that these numbers cannot be confused.
    """
    replicas, each = int(generator.integers(3, 6)), int(generator.integers(6, 10))
    sizes = {
        FULL: [each] * replicas,
        UNEVEN: [each] * (replicas - 2) + [each - 1, each - 2],
        EMPTY: [each] * (replicas - 2) + [each - 2, 0],
    }
    return [GlobalBatch(part, [generator.uniform(0.5, 3.0, size) for size in of_all]) for part, of_all in sizes.items()]


def judge_replica_losses(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A third of the points each for a full batch, an uneven one, and one without examples for some replica."""
    cases = [_case(batch) for batch in (*_drawn_batches(generator), EXAMPLE)]
    return replica_values.judge(answer, "replica_losses", cases)


def _case(batch: GlobalBatch) -> Case:
    mean = sum(replica_losses(batch.losses))

    def otherwise(values: list[float]) -> AnyHint:
        return Lab04Hint.LOSS_OTHERWISE.says(total=sum(values), mean=mean)

    values = replica_losses(batch.losses)
    return Case(batch.part, (batch.losses,), f"{batch}: ", values, _mistakes(batch), otherwise)


def _mistakes(batch: GlobalBatch) -> Sequence[tuple[Values, AnyHint]]:
    replicas, full = len(batch.losses), len(batch.losses[0])
    sums = np.array([np.sum(losses) for losses in batch.losses])
    own = np.array([max(len(losses), 1) for losses in batch.losses])
    mean = sums.sum() / batch.examples
    return [
        (sums, Lab04Hint.NOT_DIVIDED),
        (sums / own, Lab04Hint.OWN_MEAN.says(count=replicas)),
        (sums / own / replicas, Lab04Hint.MEAN_OF_MEANS),
        (sums / (full * replicas), Lab04Hint.FULL_BATCH_ASSUMED.says(divisor=full * replicas)),
        (sums / full, Lab04Hint.DIVIDED_BY_ONE_REPLICA),
        (sums / (batch.examples / replicas), Lab04Hint.DIVIDED_BY_ONE_REPLICA),
        (sums / replicas, Lab04Hint.DIVIDED_BY_REPLICAS),
        ([mean] * replicas, Lab04Hint.ALL_THE_SAME.says(count=replicas)),
        ([mean / replicas] * replicas, Lab04Hint.SHARED_OUT),
    ]


def judge_with_penalty(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A third of the points each, as without the penalty."""
    cases = []
    for batch in (*_drawn_batches(generator), EXAMPLE):
        penalty = PENALTY_EXAMPLE if batch is EXAMPLE else float(generator.uniform(0.1, 0.9))
        cases.append(_penalised_case(batch, penalty))
    return replica_values.judge(answer, "with_penalty", cases)


def _penalised_case(batch: GlobalBatch, penalty: float) -> Case:
    replicas, losses = len(batch.losses), np.array(replica_losses(batch.losses))
    first = np.eye(replicas)[0] * penalty
    examples = np.array([len(own) for own in batch.losses])
    filled = examples > 0
    uneven = Lab04Hint.PENALTY_UNEVEN
    mistakes: list[tuple[Values, AnyHint]] = [
        (losses, Lab04Hint.PENALTY_FORGOTTEN),
        (losses + penalty, Lab04Hint.PENALTY_ON_EACH),
        (losses + penalty / batch.examples, Lab04Hint.PENALTY_BY_EXAMPLES),
        (losses + first, Lab04Hint.PENALTY_ON_ONE),
        (losses + first[::-1], Lab04Hint.PENALTY_ON_ONE),
        (losses + filled * penalty / replicas, Lab04Hint.PENALTY_NOT_ON_EMPTY),
        (losses + filled * penalty / filled.sum(), uneven),
        (losses + examples / batch.examples * penalty, uneven),
        (losses - penalty / replicas, Lab04Hint.PENALTY_SUBTRACTED),
    ]

    def otherwise(values: list[float]) -> AnyHint:
        each = np.array(values) - losses
        if np.allclose(each, each[0]):
            return Lab04Hint.PENALTY_SUM.says(total=float(each.sum()))
        return Lab04Hint.PENALTY_OTHERWISE

    said = f"{batch}, penalty {penalty:.3g}: "
    values = with_penalty(batch.losses, penalty)
    return Case(batch.part, (batch.losses, penalty), said, values, mistakes, otherwise)
