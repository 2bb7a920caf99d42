"""What each replica gives as its loss when the strategy adds: an exercise of lab 04 and its judge."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from lab_04 import replica_values
from lab_04.hints import Lab04Hint
from lab_04.replica_values import Case, Values
from numpy.typing import NDArray

from distlab.labs.answer import Answer
from distlab.labs.verdict import AnyHint, Verdict

FULL, UNEVEN, EMPTY = "a full batch", "an uneven last batch", "a replica without examples"

Losses = list[NDArray[np.float64]]
"""The losses of single examples, an array of shape (examples,) for each replica."""


class GlobalBatch(NamedTuple):
    """The part of the exercise that it belongs to, and the losses on each replica."""

    part: str
    losses: Losses

    @property
    def counts(self) -> list[int]:
        """The examples on each replica."""
        return [len(losses) for losses in self.losses]

    @property
    def examples(self) -> int:
        """On all replicas together."""
        return sum(self.counts)

    def __str__(self) -> str:
        return f"{replica_values.listed(self.counts)} examples"


EXAMPLE = GlobalBatch(UNEVEN, [np.array([1.0, 2.0, 6.0]), np.array([7.0])])


def replica_losses(losses: Losses) -> list[float]:
    """Each replica's part of the mean over all examples, as `tf.nn.compute_average_loss` gives it."""
    examples = sum(map(len, losses))
    return [float(np.sum(own)) / examples for own in losses]


def drawn_batches(generator: np.random.Generator) -> list[GlobalBatch]:
    """A full batch, an uneven one, and one that leaves a replica without examples.

    Neither the examples of a replica nor all of them are as many as the replicas or their square, so that these numbers
    cannot be confused. The replica without examples is neither the first nor the last.
    """
    replicas, each = int(generator.integers(3, 6)), int(generator.choice([7, 8, 10]))
    sizes = {
        FULL: [each] * replicas,
        UNEVEN: [each] * (replicas - 2) + [each - 1, each - 2],
        EMPTY: [each] * (replicas - 2) + [each - 2],
    }
    sizes[EMPTY].insert(int(generator.integers(1, replicas - 1)), 0)
    return [GlobalBatch(part, [generator.uniform(0.5, 3.0, size) for size in of_all]) for part, of_all in sizes.items()]


def judge_replica_losses(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A third of the points each for a full batch, an uneven one, and one without examples for some replica."""
    cases = [_case(batch) for batch in (*drawn_batches(generator), EXAMPLE)]
    return replica_values.judge(answer, "replica_losses", cases)


def _case(batch: GlobalBatch) -> Case:
    values = replica_losses(batch.losses)
    sums = [float(np.sum(own)) for own in batch.losses]

    def otherwise(answer: list[float]) -> AnyHint:
        if replica_values.are_near([sum(answer)], [sum(values)]):
            return Lab04Hint.SHARED_OUT
        if (divisor := replica_values.divisor(sums, answer)) is not None:
            return Lab04Hint.LOSS_DIVISOR.says(divisor=divisor)
        return Lab04Hint.LOSS_OTHERWISE.says(total=sum(answer), mean=sum(values))

    return Case(batch.part, (batch.losses,), f"{batch}: ", "examples", batch.counts, values, mistakes(batch), otherwise)


def mistakes(batch: GlobalBatch) -> Sequence[tuple[Values, AnyHint]]:
    """What usual mistakes give for these losses, each with its hint."""
    replicas, full = len(batch.losses), len(batch.losses[0])
    sums = np.array([np.sum(losses) for losses in batch.losses])
    own = np.maximum(batch.counts, 1)
    filled = np.count_nonzero(batch.counts)
    mean = sums.sum() / batch.examples
    return [
        (sums, Lab04Hint.NOT_DIVIDED),
        (sums / own, Lab04Hint.OWN_MEAN.says(count=replicas)),
        (sums / own / replicas, Lab04Hint.MEAN_OF_MEANS),
        (sums / own / filled, Lab04Hint.MEAN_OF_MEANS),
        (sums / (full * replicas), Lab04Hint.FULL_BATCH_ASSUMED.says(divisor=full * replicas)),
        (sums / full, Lab04Hint.DIVIDED_BY_ONE_REPLICA),
        (sums / (batch.examples / replicas), Lab04Hint.DIVIDED_BY_ONE_REPLICA),
        (sums / replicas, Lab04Hint.DIVIDED_BY_REPLICAS),
        (sums / batch.examples / replicas, Lab04Hint.DIVIDED_AGAIN.says(count=replicas)),
        ([mean] * replicas, Lab04Hint.ALL_THE_SAME.says(count=replicas)),
        ([mean / replicas] * replicas, Lab04Hint.SHARED_OUT),
    ]
