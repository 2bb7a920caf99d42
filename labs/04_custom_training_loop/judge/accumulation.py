"""Gradients of micro-batches, added up over ranks and time before one update: an exercise of lab 04 and its judge."""

from typing import NamedTuple

import numpy as np
from lab_04.accumulation_mistakes import mistakes
from lab_04.hints import Lab04Hint
from lab_04.replica_values import TOLERANCE, divisor
from numpy.typing import NDArray

from distlab.labs.answer import Answer
from distlab.labs.number_judge import NumberHint, described, is_rounded
from distlab.labs.part_cases import PartCase, judge_cases
from distlab.labs.plain_data import Plain
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
    """There are more micro-batches than ranks, and the images of a full one are neither of these nor their product.

    The empty micro-batch is neither the first nor the last of its rank, nor is its rank.
    """
    ranks = int(generator.integers(3, 5))
    micro_batches = ranks + int(generator.integers(1, 3))
    full = int(generator.choice([7, 11, 13]))
    counts = np.full((ranks, micro_batches), full)
    if part != EQUAL:
        # Other numbers on each rank and in each micro-batch.
        counts -= generator.integers(0, 2, counts.shape)
        counts[-1] -= 1
        counts[-1, -1] = 1
    if part == EMPTY:
        counts[-1, -1] = full - 3
        counts[generator.integers(1, ranks - 1), generator.integers(1, micro_batches - 1)] = 0
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


def _verdict(case: Accumulated, answer: Plain) -> Verdict:
    expected = accumulated(case.gradients, case.counts)
    try:
        gradient = np.asarray(answer)
    except ValueError:  # of a list of lists of different lengths
        gradient = np.zeros(0)
    if gradient.dtype.kind not in "if" or gradient.shape != expected.shape:
        return wrong(Lab04Hint.NO_GRADIENT.says(count=len(expected), got=described(answer)))
    if np.allclose(gradient, expected, rtol=TOLERANCE, atol=TOLERANCE):
        return right()
    return wrong(_hint(case, gradient, expected), context=_said(case))


def _hint(case: Accumulated, gradient: NDArray[np.float64], expected: NDArray[np.float64]) -> AnyHint:
    if not np.isfinite(gradient).all():
        return Lab04Hint.NAN_WITHOUT_EMPTY if case.counts.all() else Lab04Hint.NAN_GRADIENT
    for mistaken, hint in mistakes(case.gradients, case.counts):
        if np.allclose(gradient, mistaken, rtol=TOLERANCE):
            return hint
    if np.allclose(np.sort(gradient), np.sort(expected), rtol=TOLERANCE, atol=TOLERANCE):
        return Lab04Hint.PARAMETERS_ORDER
    if all(is_rounded(*pair) for pair in zip(gradient.tolist(), expected.tolist(), strict=True)):
        return NumberHint.ROUNDED
    if (factor := divisor(expected.tolist(), gradient.tolist())) is not None:
        return Lab04Hint.ACCUMULATED_DIVISOR.says(divisor=factor * case.counts.sum())
    place = int(np.flatnonzero(~np.isclose(gradient, expected, rtol=TOLERANCE, atol=TOLERANCE))[0])
    return Lab04Hint.ACCUMULATED_OTHERWISE.says(place=place, number=gradient[place], expected=expected[place])
