"""A scheduler that gives slow workers fewer images: an exercise of lab 08 and its judge."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from lab_08.hints import Lab08Hint

from distlab.labs.answer import Answer
from distlab.labs.answer_errors import TookTooLong
from distlab.labs.number_judge import described, number
from distlab.labs.part_cases import PartCase, judge_cases
from distlab.labs.plain_data import Plain
from distlab.labs.verdict import Verdict, right, wrong

FIRST, LATER, VERY_SLOW = "equal shares so far", "unequal shares so far", "very slow workers"


class LastStep(NamedTuple):
    """The part of the exercise, the images of each worker in the last step, and the seconds that it took."""

    part: str
    shares: list[int]
    seconds: list[float]

    @property
    def seconds_per_image(self) -> list[float]:
        """Of each worker."""
        return [seconds / share for share, seconds in zip(self.shares, self.seconds, strict=True)]

    def last_end(self, shares: Sequence[float]) -> float:
        """The seconds of a step with these shares: those of its last worker."""
        return max(share * each for share, each in zip(shares, self.seconds_per_image, strict=True))

    def __str__(self) -> str:
        return f"shares {self.shares}, seconds {[round(seconds, 4) for seconds in self.seconds]}"


EXAMPLE = LastStep(LATER, [6, 3, 3], [0.6, 0.6, 0.9])
ALONE = LastStep(FIRST, [7], [0.35])
TRAPS = (LastStep(LATER, [12, 7, 1], [12.0, 7.0, 6.1]), LastStep(VERY_SLOW, [10, 5, 5], [1.0, 50.0, 50.0]))
"""Moving images stops too early here, and so does repairing the sum of rounded shares.

In the first one the worker that would end one more image first is not the one that ends first now, and three rounded
shares have the right sum. In the second one two workers end last together, and each of them needs a whole image.
"""


def next_shares(shares: Sequence[int], seconds: Sequence[float]) -> list[int]:
    """Shares with which the last worker ends as early as possible, at least one image for each."""
    return _first_to_finish(sum(shares), [took / share for share, took in zip(shares, seconds, strict=True)])


def _first_to_finish(images: int, seconds_per_image: Sequence[float]) -> list[int]:
    """One image for each worker; each other one goes to the worker that would finish it first."""
    shares = [1] * len(seconds_per_image)
    for _ in range(images - len(shares)):
        ends = [(share + 1) * each for share, each in zip(shares, seconds_per_image, strict=True)]
        shares[int(np.argmin(ends))] += 1
    return shares


def _drawn(generator: np.random.Generator, part: str) -> LastStep:
    workers = int(generator.integers(4, 7))
    shares = np.full(workers, int(generator.integers(9, 14)))
    if part != FIRST:
        shares += generator.permutation(np.arange(workers)) * 2
    per_image = generator.uniform(0.01, 0.03, workers)
    if part == VERY_SLOW:
        per_image[generator.integers(workers)] = generator.uniform(4, 6)
    return LastStep(part, shares.tolist(), (shares * per_image).tolist())


def _hard(generator: np.random.Generator, part: str) -> LastStep:
    """A drawn step, not of a very slow worker, for which rounded proportional shares are not the best."""
    while True:
        step = _drawn(generator, part)
        best = step.last_end(next_shares(step.shares, step.seconds))
        if all(step.last_end(shares) > best * (1 + 1e-6) for shares in _proportional(step)):
            return step


def _rearranged(generator: np.random.Generator, step: LastStep) -> LastStep:
    """The same step with the workers in another order, on machines that are all faster or slower by one factor."""
    order, factor = generator.permutation(len(step.shares)), float(generator.uniform(0.02, 0.05))
    return LastStep(step.part, [step.shares[each] for each in order], [step.seconds[each] * factor for each in order])


def _proportional(step: LastStep) -> list[list[int]]:
    """Shares in proportion to the speeds, at least 1: largest remainders, and rounded with the rest for the last."""
    speeds = 1 / np.array(step.seconds_per_image)
    images = sum(step.shares)
    ideal = speeds / speeds.sum() * images
    whole = np.maximum(np.floor(ideal).astype(int), 1)
    for worker in np.argsort(np.floor(ideal) - ideal)[: max(images - int(whole.sum()), 0)]:
        whole[worker] += 1
    rounded = np.maximum(np.round(ideal).astype(int), 1)
    rounded[-1] = images - rounded[:-1].sum()
    return [whole.tolist(), rounded.tolist()]


def judge_next_shares(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A third of the points for each part."""

    def part_case(step: LastStep) -> PartCase:
        return PartCase(step.part, lambda: _verdict(step, _answer_in_time(answer, step)), f"{step}: ")

    steps = [_drawn(generator, part) for part in (FIRST, LATER, LATER, VERY_SLOW)]
    steps += [_hard(generator, part) for part in (FIRST, LATER)]
    steps += [_rearranged(generator, step) for step in TRAPS]
    return judge_cases(map(part_case, [*steps, EXAMPLE, ALONE]))


def _answer_in_time(answer: Answer, step: LastStep) -> Plain:
    """What the answer gives; raises TookTooLong with the number of divisions that it may have tried."""
    try:
        return answer.call("next_shares", step.shares, step.seconds)
    except TookTooLong as error:
        images, workers = sum(step.shares), len(step.shares)
        divisions = math.comb(images - 1, workers - 1)
        hint = Lab08Hint.TOO_MANY_DIVISIONS.says(error=error, divisions=divisions, images=images, workers=workers)
        raise TookTooLong(hint.text) from error


def _verdict(step: LastStep, answer: Plain) -> Verdict:
    values = answer.tolist() if isinstance(answer, np.ndarray) else answer
    shares = [number(value) for value in values] if isinstance(values, (list, tuple)) else []
    numbers = [share for share in shares if share is not None]
    if len(shares) != len(step.shares) or len(numbers) != len(shares):
        return wrong(Lab08Hint.NO_SHARES.says(count=len(step.shares), got=described(answer)))
    case = f"{step}: "
    for worker, share in enumerate(numbers):
        if share != share // 1:
            return wrong(Lab08Hint.NOT_WHOLE.says(worker=worker, share=share), context=case)
    counts = list(map(int, numbers))
    images = sum(step.shares)
    if sum(counts) != images:
        return wrong(Lab08Hint.SUM_CHANGED.says(said=counts, total=sum(counts), images=images), context=case)
    if min(counts) < 1:
        worker = counts.index(min(counts))
        return wrong(Lab08Hint.WITHOUT_IMAGES.says(worker=worker, share=counts[worker]), context=case)
    took, best = step.last_end(counts), step.last_end(next_shares(step.shares, step.seconds))
    if took <= best * (1 + 1e-9):
        return right()
    if counts == step.shares:
        return wrong(Lab08Hint.SHARES_KEPT.says(said=counts, seconds=took, best=best), context=case)
    if counts == _by_seconds(step):
        return wrong(Lab08Hint.SECONDS_FOR_SPEED.says(said=counts), context=case)
    before = step.last_end(step.shares)
    if took >= before:
        return wrong(Lab08Hint.SLOWER_THAN_BEFORE.says(said=counts, seconds=took, before=before), context=case)
    return wrong(Lab08Hint.NOT_THE_SHORTEST.says(said=counts, seconds=took, best=best), context=case)


def _by_seconds(step: LastStep) -> list[int]:
    """What 1 / seconds as the speed gives, although the shares were unequal."""
    return _first_to_finish(sum(step.shares), step.seconds)
