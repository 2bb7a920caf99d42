"""Gradients of micro-batches, added up over ranks and time before one update: an exercise of lab 04 and its judge."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from distlab.labs.answer import Answer
from distlab.labs.lab_04.hints import Lab04Hint
from distlab.labs.lab_04.replica_values import TOLERANCE
from distlab.labs.number_judge import NumberHint, is_rounded
from distlab.labs.part_cases import PartCase, judge_cases
from distlab.labs.verdict import AnyHint, Verdict, right, wrong

EQUAL, UNEQUAL, EMPTY = "equal micro-batches", "unequal micro-batches", "a micro-batch without images"


class Accumulated(NamedTuple):
    """The part of the exercise that it belongs to, and what the function gets.

    gradients: shape (ranks, micro-batches, parameters), each the mean over the images of its micro-batch.
    counts: shape (ranks, micro-batches), the images of each.
    """

    part: str
    gradients: NDArray[np.float64]
    counts: NDArray[np.int64]


EXAMPLE = Accumulated(UNEQUAL, np.array([[[1.0], [5.0]], [[2.0], [8.0]]]), np.array([[3, 1], [1, 1]]))


def accumulated(gradients: NDArray[np.float64], counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """The gradient of the mean over all images, shape (parameters,)."""
    sums = np.where(counts[..., None] > 0, gradients, 0.0) * counts[..., None]
    return np.asarray(sums.sum(axis=(0, 1)) / counts.sum())


def _drawn(generator: np.random.Generator, part: str) -> Accumulated:
    """The images of a full micro-batch are never as many as the ranks, the micro-batches or all of these."""
    ranks, micro_batches = (int(generator.integers(low, low + 3)) for low in (2, 3))
    full = int(generator.choice([7, 11, 13]))
    counts = np.full((ranks, micro_batches), full)
    if part != EQUAL:
        # Other numbers on each rank and in each micro-batch; the last of the last rank is the smallest.
        counts -= generator.integers(0, 2, counts.shape)
        counts[-1] -= 1
        counts[-1, -1] = 0 if part == EMPTY else 1
    gradients = generator.normal(size=(ranks, micro_batches, int(generator.integers(3, 6)))) + 1.0
    gradients[counts == 0] = np.nan
    return Accumulated(part, gradients, counts)


def judge_accumulated(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A third of the points each for equal micro-batches, unequal ones, and one without images."""

    def part_case(case: Accumulated) -> PartCase:
        return PartCase(
            case.part, lambda: _verdict(case, answer.call("accumulated", case.gradients, case.counts)), _said(case)
        )

    return judge_cases(map(part_case, [*(_drawn(generator, part) for part in (EQUAL, UNEQUAL, EMPTY)), EXAMPLE]))


def _said(case: Accumulated) -> str:
    return f"images {case.counts.tolist()}: "


def _verdict(case: Accumulated, answer: object) -> Verdict:
    expected = accumulated(case.gradients, case.counts)
    try:
        gradient = np.asarray(answer)
    except ValueError:  # of a list of lists of different lengths
        gradient = np.zeros(0)
    if gradient.dtype.kind not in "if" or gradient.shape != expected.shape:
        return wrong(Lab04Hint.NO_GRADIENT.says(count=len(expected)))
    if np.allclose(gradient, expected, rtol=TOLERANCE, atol=TOLERANCE):
        return right()
    said = _said(case)
    if np.isnan(gradient).any():
        return wrong(Lab04Hint.NAN_GRADIENT, context=said)
    mistakes = _mistakes(case)
    hint = next((hint for mistaken, hint in mistakes if np.allclose(gradient, mistaken, rtol=TOLERANCE)), None)
    return wrong(hint or _otherwise(gradient.tolist(), expected.tolist()), context=said)


def _otherwise(gradient: list[float], expected: list[float]) -> AnyHint:
    pairs = list(zip(gradient, expected, strict=True))
    if all(is_rounded(number, right_number) for number, right_number in pairs):
        return NumberHint.ROUNDED
    place = next(place for place, pair in enumerate(pairs) if not np.isclose(*pair, rtol=TOLERANCE, atol=TOLERANCE))
    return Lab04Hint.ACCUMULATED_OTHERWISE.says(place=place, number=gradient[place], expected=expected[place])


def _mistakes(case: Accumulated) -> list[tuple[NDArray[np.float64], AnyHint]]:
    counts, means = case.counts[..., None], np.where(case.counts[..., None] > 0, case.gradients, 0.0)
    full, sums = case.counts.max(), means * counts
    per_rank = sums.sum(axis=1) / np.maximum(counts.sum(axis=1), 1)
    per_step = sums.sum(axis=0) / np.maximum(counts.sum(axis=0), 1)
    of_all = Lab04Hint.MEAN_OF_ALL_MEANS.says(largest=int(full))
    return [
        (means.mean(axis=(0, 1)), of_all),
        (means.sum(axis=(0, 1)) / np.count_nonzero(case.counts), of_all),
        (means.sum(axis=1).mean(axis=0), Lab04Hint.MICRO_BATCHES_SUMMED),
        (means.sum(axis=(0, 1)), Lab04Hint.MICRO_BATCHES_SUMMED),
        (per_rank.mean(axis=0), Lab04Hint.WEIGHTED_PER_RANK),
        (per_step.mean(axis=0), Lab04Hint.WEIGHTED_PER_STEP),
        (sums.sum(axis=(0, 1)), Lab04Hint.GRADIENTS_NOT_DIVIDED),
        (sums.mean(axis=(0, 1)), Lab04Hint.DIVIDED_BY_MICRO_BATCHES.says(count=case.counts.size)),
        (sums.sum(axis=(0, 1)) / (full * case.counts.size), Lab04Hint.FULL_MICRO_BATCHES),
    ]
