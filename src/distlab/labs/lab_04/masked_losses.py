"""Losses of words in padded sequences, divided by the words of all replicas: an exercise of lab 04 and its judge."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from distlab.labs.answer import Answer
from distlab.labs.lab_04 import replica_values
from distlab.labs.lab_04.hints import Lab04Hint
from distlab.labs.lab_04.replica_values import Case, Values
from distlab.labs.verdict import AnyHint, Verdict

EQUAL, UNEQUAL, ONLY_PADDING = "equally many words", "unequal numbers of words", "a replica of padding only"


class PaddedBatch(NamedTuple):
    """The part of the exercise that it belongs to; losses and masks (1 word, 0 padding) of each replica.

    Each array has the shape (sequences, positions).
    """

    part: str
    losses: list[NDArray[np.float64]]
    masks: list[NDArray[np.int64]]

    @property
    def words(self) -> list[int]:
        """On each replica."""
        return [int(mask.sum()) for mask in self.masks]

    def __str__(self) -> str:
        return f"{replica_values.listed(self.words)} words"


EXAMPLE = PaddedBatch(
    UNEQUAL,
    [np.array([[2.0, 4.0, 9.0], [3.0, 9.0, 9.0]]), np.array([[5.0, 9.0, 9.0]])],
    [np.array([[1, 1, 0], [1, 0, 0]]), np.array([[1, 0, 0]])],
)


def masked_losses(losses: list[NDArray[np.float64]], masks: list[NDArray[np.int64]]) -> list[float]:
    """Each replica's part of the mean over the words of all replicas."""
    words = sum(int(mask.sum()) for mask in masks)
    return [float(np.sum(own * mask)) / words for own, mask in zip(losses, masks, strict=True)]


def _drawn(generator: np.random.Generator, part: str, lengths: list[list[int]], positions: int) -> PaddedBatch:
    """Sequences of these lengths, padded; at padding the losses are large, and that of one word is 0."""
    masks = [(np.arange(positions) < np.array(of_one)[:, None]).astype(np.int64) for of_one in lengths]
    losses = [generator.uniform(0.5, 3.0, mask.shape) + 5 * (1 - mask) for mask in masks]
    losses[0][0, 0] = 0.0
    return PaddedBatch(part, losses, masks)


def _drawn_batches(generator: np.random.Generator) -> list[PaddedBatch]:
    positions = int(generator.integers(6, 9))
    short, long = int(generator.integers(1, 3)), positions - int(generator.integers(1, 3))
    return [
        _drawn(generator, EQUAL, [[short, long], [long, short], [short, long]], positions),
        _drawn(generator, UNEQUAL, [[long, long], [short, long], [short]], positions),
        _drawn(generator, ONLY_PADDING, [[long, short], [0, 0], [short, short, short]], positions),
    ]


def judge_masked_losses(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A third of the points each for equal numbers of words, unequal ones, and a replica of padding only."""
    cases = [_case(batch) for batch in (*_drawn_batches(generator), EXAMPLE)]
    return replica_values.judge(answer, "masked_losses", cases)


def _case(batch: PaddedBatch) -> Case:
    values = masked_losses(batch.losses, batch.masks)

    def otherwise(answer: list[float]) -> AnyHint:
        return Lab04Hint.MASKED_OTHERWISE.says(total=sum(answer), mean=sum(values))

    return Case(batch.part, (batch.losses, batch.masks), f"{batch}: ", values, _mistakes(batch), otherwise)


def _mistakes(batch: PaddedBatch) -> list[tuple[Values, AnyHint]]:
    replicas, words = len(batch.losses), np.array(batch.words)
    positions, sequences = sum(mask.size for mask in batch.masks), sum(map(len, batch.masks))
    of_words = np.array([np.sum(own * mask) for own, mask in zip(batch.losses, batch.masks, strict=True)])
    of_all = np.array([np.sum(own) for own in batch.losses])
    own = np.maximum(words, 1)
    sequence_means = [
        np.sum(np.sum(own * mask, axis=1) / np.maximum(mask.sum(axis=1), 1))
        for own, mask in zip(batch.losses, batch.masks, strict=True)
    ]
    mean = of_words.sum() / words.sum()
    return [
        (of_words, Lab04Hint.MASKED_NOT_DIVIDED),
        ([mean] * replicas, Lab04Hint.ALL_THE_SAME.says(count=replicas)),
        ([mean / replicas] * replicas, Lab04Hint.SHARED_OUT),
        (_by_losses_other_than_0(batch), Lab04Hint.ZEROS_LEFT_OUT),
        (of_all / positions, Lab04Hint.MASKS_UNUSED),
        (of_all / words.sum(), Lab04Hint.PADDING_ADDED),
        (of_words / positions, Lab04Hint.PADDING_COUNTED),
        ([total / mask.size for total, mask in zip(of_words, batch.masks, strict=True)], Lab04Hint.PADDING_COUNTED),
        (of_words / own, Lab04Hint.OWN_WORDS.says(count=replicas)),
        (of_words / own / replicas, Lab04Hint.MEAN_OF_REPLICAS),
        (of_words / sequences, Lab04Hint.BY_SEQUENCES),
        (np.array(sequence_means) / sequences, Lab04Hint.BY_SEQUENCES),
    ]


def _by_losses_other_than_0(batch: PaddedBatch) -> Values:
    masked = [own * mask for own, mask in zip(batch.losses, batch.masks, strict=True)]
    return np.array([own.sum() for own in masked]) / sum(np.count_nonzero(own) for own in masked)
