"""Losses of words in padded sequences, divided by the words of all replicas: an exercise of lab 04 and its judge."""

from typing import NamedTuple

import numpy as np
from lab_04 import replica_values
from lab_04.hints import Lab04Hint
from lab_04.replica_values import Case, Values
from numpy.typing import NDArray

from distlab.labs.answer import Answer
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
    """Each replica has two sequences at least, so that masks taken as indices of rows raise no IndexError.

    No replica has as many words as there are sequences, and three times its words are not all positions.
    """
    positions = int(generator.choice([8, 10]))
    short, long = int(generator.integers(1, 3)), positions - int(generator.integers(1, 3))
    return [
        _drawn(generator, EQUAL, [[short, long], [long, short], [short, long]], positions),
        _drawn(generator, UNEQUAL, [[long, long, long], [short, long], [short, 1]], positions),
        _drawn(generator, ONLY_PADDING, [[long, short], [0, 0], [short, short, short]], positions),
    ]


def judge_masked_losses(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A third of the points each for equal numbers of words, unequal ones, and a replica of padding only."""
    cases = [_case(batch) for batch in (*_drawn_batches(generator), EXAMPLE)]
    return replica_values.judge(answer, "masked_losses", cases)


def _case(batch: PaddedBatch) -> Case:
    values = masked_losses(batch.losses, batch.masks)
    sums = _sums_of_words(batch)

    def otherwise(answer: list[float]) -> AnyHint:
        if replica_values.are_near([sum(answer)], [sum(values)]):
            return Lab04Hint.SHARED_OUT
        if (divisor := replica_values.divisor(sums, answer)) is not None:
            return Lab04Hint.MASKED_DIVISOR.says(divisor=divisor)
        return Lab04Hint.MASKED_OTHERWISE.says(total=sum(answer), mean=sum(values))

    arguments = (batch.losses, batch.masks)
    mistakes = [*_mistakes_with_masks(batch), *_mistakes_of_division(batch), *_mistakes_with_sequences(batch)]
    return Case(batch.part, arguments, f"{batch}: ", "words", batch.words, values, mistakes, otherwise)


def _sums_of_words(batch: PaddedBatch) -> NDArray[np.float64]:
    return np.array([np.sum(own * mask) for own, mask in zip(batch.losses, batch.masks, strict=True)])


def _mistakes_of_division(batch: PaddedBatch) -> list[tuple[Values, AnyHint]]:
    """The losses of words are added up rightly, and divided wrongly."""
    replicas, words, sums = len(batch.losses), np.array(batch.words), _sums_of_words(batch)
    sizes, own = np.array([mask.size for mask in batch.masks]), np.maximum(words, 1)
    mean = sums.sum() / words.sum()
    of_one = [
        (sums / (replicas * each), Lab04Hint.WORDS_OF_ONE_REPLICA.says(divisor=divisor, replicas=replicas, words=each))
        for each, divisor in ((each, replicas * each) for each in batch.words if each)
    ]
    return [
        (sums, Lab04Hint.MASKED_NOT_DIVIDED),
        ([mean] * replicas, Lab04Hint.ALL_THE_SAME.says(count=replicas)),
        ([mean / replicas] * replicas, Lab04Hint.SHARED_OUT),
        (_by_losses_other_than_0(batch), Lab04Hint.ZEROS_LEFT_OUT),
        (sums / sizes.sum(), Lab04Hint.PADDING_COUNTED),
        (sums / sizes, Lab04Hint.PADDING_COUNTED),
        (sums / sizes / replicas, Lab04Hint.PADDING_COUNTED),
        (sums / own, Lab04Hint.OWN_WORDS.says(count=replicas)),
        (sums / own / replicas, Lab04Hint.MEAN_OF_REPLICAS),
        (sums / own / np.count_nonzero(words), Lab04Hint.MEAN_OF_REPLICAS),
        *of_one,
    ]


def _mistakes_with_masks(batch: PaddedBatch) -> list[tuple[Values, AnyHint]]:
    """Other positions than those of words are added up."""
    words, sizes = np.array(batch.words), np.array([mask.size for mask in batch.masks])
    of_all = np.array([np.sum(own) for own in batch.losses])
    at_padding = of_all - _sums_of_words(batch)
    turned = np.array([np.sum(own * ~mask) for own, mask in zip(batch.losses, batch.masks, strict=True)])
    mistakes: list[tuple[Values, AnyHint]] = [
        (of_all / sizes.sum(), Lab04Hint.MASKS_UNUSED),
        (of_all / words.sum(), Lab04Hint.PADDING_ADDED),
        (of_all / sizes * words / sizes.sum(), Lab04Hint.PADDING_ADDED),
        (of_all / sizes * words / words.sum(), Lab04Hint.PADDING_ADDED),
        (at_padding, Lab04Hint.UPSIDE_DOWN_MASK),
        (at_padding / words.sum(), Lab04Hint.UPSIDE_DOWN_MASK),
        (at_padding / (sizes - words).sum(), Lab04Hint.UPSIDE_DOWN_MASK),
        (turned / words.sum(), Lab04Hint.BITS_TURNED),
        (turned / sum(np.sum(~mask) for mask in batch.masks), Lab04Hint.BITS_TURNED),
    ]
    if all(len(mask) > 1 for mask in batch.masks):
        rows = np.array([own[mask].sum() for own, mask in zip(batch.losses, batch.masks, strict=True)])
        mistakes.append((rows / words.sum(), Lab04Hint.ROWS_PICKED))
    return mistakes


def _mistakes_with_sequences(batch: PaddedBatch) -> list[tuple[Values, AnyHint]]:
    """Sequences are counted instead of words."""
    own_sequences = np.array([len(mask) for mask in batch.masks])
    sequences, filled = own_sequences.sum(), sum(np.count_nonzero(mask.any(axis=1)) for mask in batch.masks)
    means = np.array(
        [
            np.sum(np.sum(own * mask, axis=1) / np.maximum(mask.sum(axis=1), 1))
            for own, mask in zip(batch.losses, batch.masks, strict=True)
        ]
    )
    return [
        (_sums_of_words(batch) / sequences, Lab04Hint.BY_SEQUENCES.says(count=sequences)),
        (means / sequences, Lab04Hint.SEQUENCE_MEANS),
        (means / filled, Lab04Hint.SEQUENCE_MEANS),
        (means / own_sequences / len(own_sequences), Lab04Hint.SEQUENCE_MEANS),
        (means / own_sequences, Lab04Hint.SEQUENCE_MEANS),
    ]


def _by_losses_other_than_0(batch: PaddedBatch) -> Values:
    masked = [own * mask for own, mask in zip(batch.losses, batch.masks, strict=True)]
    return np.array([own.sum() for own in masked]) / sum(np.count_nonzero(own) for own in masked)
