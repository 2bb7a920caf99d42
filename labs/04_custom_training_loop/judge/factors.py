"""How many times too large a loop's gradient is: an exercise of lab 04 and its judge."""

from typing import NamedTuple

import numpy as np
from lab_04.hints import Lab04Hint

from distlab.labs.answer import Answer
from distlab.labs.number_judge import Expected, Mistakes, NumberJudge
from distlab.labs.verdict import AnyHint, Hint, Verdict


class Loop(NamedTuple):
    """Replicas, images on each of them, and micro-batches before an update."""

    replicas: int
    images: int
    micro_batches: int


EXAMPLE = Loop(2, 3, 7)
"""With 4 micro-batches, a factor that is multiplied by them could be one that is upside down."""
SECOND = Loop(5, 7, 3)
"""Apart from the example, in which 3 images are one more than the replicas."""

TOLERANCE = 1e-7
MICRO_BATCHES = "micro-batches, summed"


def factors(replicas: int, images: int, micro_batches: int) -> dict[str, float]:
    """The update's gradient divided by that of the mean over all of its images, loop by loop."""
    return {
        "means, summed": replicas,
        "means, averaged": 1.0,
        "sums, summed": replicas * images,
        "sums, averaged": images,
        "global means, averaged": 1 / replicas,
        MICRO_BATCHES: micro_batches,
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
    replicas = int(generator.choice([3, 7, 11, 13]))  # whose inverse has no end
    rest = [number for number in (5, 7, 11, 13, 17) if number != replicas]
    images, micro_batches = generator.choice(rest, 2, replace=False).tolist()
    judge = NumberJudge("factors", NAMES)
    for loop in (EXAMPLE, SECOND, Loop(replicas, images, micro_batches)):
        expected = {name: _expected(name, loop) for name in NAMES}
        case = f"{loop.replicas} replicas with {loop.images} images, {loop.micro_batches} micro-batches"
        if problem := judge.compare(answer.call("factors", *loop), expected, case):
            return problem
    return judge.verdict()


def _expected(name: str, loop: Loop) -> Expected:
    """After the example no usual mistake is looked for: a formula that was right there is none of them."""
    by_hand = _by_hand(name, loop)
    if loop == EXAMPLE:
        return Expected(factors(*loop)[name], _mistakes(name, loop), by_hand, TOLERANCE)
    return Expected(factors(*loop)[name], [], Lab04Hint.RIGHT_BY_CHANCE.says().then(by_hand), TOLERANCE)


def _by_hand(name: str, loop: Loop) -> AnyHint:
    if name == MICRO_BATCHES:
        return Lab04Hint.MICRO_BATCHES_OTHERWISE.says(micro_batches=loop.micro_batches)
    return Lab04Hint.FACTOR_OTHERWISE.says(replicas=loop.replicas, images=loop.images)


def _mistakes(name: str, loop: Loop) -> Mistakes:
    right = factors(*loop)[name]
    of_others = [value for value in factors(*loop).values() if value not in (right, 1, 1 / right)]
    by_others = [value for factor in of_others for value in (factor, 1 / factor)]
    if name == MICRO_BATCHES:
        more = [right * value for value in by_others]
    else:
        more = [right * loop.micro_batches, right / loop.micro_batches]
    hint_on_more = _HINTS[name] if name == MICRO_BATCHES else Lab04Hint.ONE_MICRO_BATCH
    return [
        (1 / right, Lab04Hint.UPSIDE_DOWN),
        (1.0, Lab04Hint.AS_IF_RIGHT),
        (0.0 if right < 1 else None, Lab04Hint.INTEGER_DIVISION),
        *((value, hint_on_more) for value in more),
        *((value, _HINTS[name]) for value in by_others),
    ]
