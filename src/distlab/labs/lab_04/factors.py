"""How many times too large a loop's gradient is: an exercise of lab 04 and its judge."""

from typing import NamedTuple

import numpy as np

from distlab.labs.answer import Answer
from distlab.labs.lab_04.hints import Lab04Hint
from distlab.labs.number_judge import Expected, Mistakes, NumberJudge
from distlab.labs.verdict import Hint, Verdict


class Loop(NamedTuple):
    """Replicas, images on each of them, and micro-batches before an update."""

    replicas: int
    images: int
    micro_batches: int


EXAMPLE = Loop(2, 3, 4)


def factors(replicas: int, images: int, micro_batches: int) -> dict[str, float]:
    """The update's gradient divided by that of the mean over all of its images, loop by loop."""
    return {
        "means, summed": replicas,
        "means, averaged": 1.0,
        "sums, summed": replicas * images,
        "sums, averaged": images,
        "global means, averaged": 1 / replicas,
        "micro-batches, summed": micro_batches,
    }


NAMES = tuple(factors(*EXAMPLE))
_HINTS: dict[str, Hint] = dict(
    zip(
        NAMES,
        (
            Lab04Hint.SUMMED_MEANS,
            Lab04Hint.AVERAGED_MEANS,
            Lab04Hint.SUMS_NEED_ALL,
            Lab04Hint.SUMS_AVERAGED,
            Lab04Hint.DIVIDED_TWICE,
            Lab04Hint.MICRO_BATCHES_ADDED,
        ),
        strict=True,
    )
)


def judge_factors(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A sixth of the points for each loop."""
    replicas = int(generator.choice([3, 6, 7, 9, 11]))  # whose inverse has no end
    rest = [number for number in (3, 4, 5, 6, 7, 8, 9, 11) if number != replicas]
    images, micro_batches = generator.choice(rest, 2, replace=False).tolist()
    judge = NumberJudge("factors", NAMES)
    for loop in (EXAMPLE, Loop(replicas, images, micro_batches)):
        expected = {
            name: Expected(value, _mistakes(name, loop), Lab04Hint.FACTOR_OTHERWISE)
            for name, value in factors(*loop).items()
        }
        case = f"{loop.replicas} replicas with {loop.images} images, {loop.micro_batches} micro-batches"
        if problem := judge.compare(answer.call("factors", *loop), expected, case):
            return problem
    return judge.verdict()


def _mistakes(name: str, loop: Loop) -> Mistakes:
    right = factors(*loop)[name]
    of_others = [value for value in factors(*loop).values() if value not in (right, 1, 1 / right)]
    return [
        (1 / right, Lab04Hint.UPSIDE_DOWN),
        (1.0, Lab04Hint.AS_IF_RIGHT),
        *((value, _HINTS[name]) for factor in of_others for value in (factor, 1 / factor)),
    ]
