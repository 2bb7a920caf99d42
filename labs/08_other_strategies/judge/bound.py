"""A bound on how far a worker may be ahead, and what follows from it: two exercises of lab 08 and their judges."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from lab_08.hints import Lab08Hint

from distlab.labs.answer import Answer
from distlab.labs.answer_errors import AnswerError, Raised
from distlab.labs.number_judge import Expected, Mistakes, NumberJudge, is_near, number
from distlab.labs.part_cases import error_verdict
from distlab.labs.plain_data import Plain
from distlab.labs.verdict import AnyHint, Hint, Verdict, right, wrong

NAMES = ("largest staleness", "without a bound", "with the bound")


class BoundedWorkers(NamedTuple):
    """The seconds that each worker needs for a gradient, and by how many gradients one may be ahead."""

    seconds: list[float]
    lead: int

    def __str__(self) -> str:
        return f"{', '.join(f'{seconds:g}' for seconds in self.seconds)} s, lead {self.lead}"


RULE_EXAMPLES = (([4, 3, 5], 2, 2), ([4, 2, 5], 2, 2))
EXAMPLE = BoundedWorkers([0.5, 0.2, 1.25, 0.4, 0.25], 7)
"""No two usual mistakes give the same number here."""
LEAD_OF_0, ONE_WORKER = BoundedWorkers([0.5, 0.5, 0.3, 1.7], 0), BoundedWorkers([0.7], 2)
NEAR = 0.01
"""The relative error up to which a rate may come from a simulation."""


def may_begin(finished: Sequence[int], worker: int, lead: int) -> bool:
    """Whether a worker may read the weights for its next gradient; the others may be computing one."""
    return finished[worker] - min(finished) <= lead


def limits(seconds: Sequence[float], lead: int) -> dict[str, float]:
    """The staleness that no gradient exceeds, and gradients per second in the long run.

    While a worker computes its gradient number a + 1, another one goes from a − lead to a + lead + 1 at most.
    """
    workers = len(seconds)
    values = (workers - 1) * (2 * lead + 1), sum(1 / each for each in seconds), workers / max(seconds)
    return dict(zip(NAMES, map(float, values), strict=True))


def judge_may_begin(answer: Answer, generator: np.random.Generator) -> Verdict:
    """All points or none: a rule that is sometimes wrong is no bound."""
    states, answers = [*_drawn_states(generator), *RULE_EXAMPLES], []
    for state in states:
        allowed = answer.call("may_begin", *state)
        if not isinstance(allowed, bool):
            return wrong(Lab08Hint.NO_TRUTH_VALUE.says(value=allowed))
        answers.append(allowed)
    mistaken = [state for state, allowed in zip(states, answers, strict=True) if allowed != may_begin(*state)]
    if not mistaken:
        return _verdict_on_one_worker(answer) or right(
            "No worker gets further ahead than allowed, and none waits needlessly."
        )
    if len(set(answers)) == 1:
        return wrong(Lab08Hint.ALWAYS_THE_SAME.says(value=answers[0]))
    for rule, mistake in _RULES:
        if answers == [rule(*state) for state in states]:
            return wrong(mistake)
    finished, worker, lead = mistaken[0]
    hint = Lab08Hint.LEAD_TOO_SMALL if may_begin(*mistaken[0]) else Lab08Hint.LEAD_TOO_LARGE
    case = f"With {finished} gradients finished and a lead of {lead}, worker {worker}"
    return wrong(hint.says(case=case, ahead=finished[worker] - min(finished)))


def _verdict_on_one_worker(answer: Answer) -> Verdict | None:
    """What is wrong if there is no other worker; None if nothing is."""
    for finished, lead in ((0, 0), (5, 2)):
        try:
            allowed = answer.call("may_begin", [finished], 0, lead)
        except Raised as error:
            return wrong(str(error), context="With one worker only: ")
        if allowed is not True:
            return wrong(Lab08Hint.ALONE.says(finished=finished, lead=lead))
    return None


def _others(finished: Sequence[int], worker: int) -> list[int]:
    return [count for peer, count in enumerate(finished) if peer != worker]


_RULES: list[tuple[Callable[[Sequence[int], int, int], bool], Hint]] = [
    (lambda finished, worker, lead: finished[worker] - min(finished) < lead, Lab08Hint.ONE_LESS),
    (lambda finished, worker, lead: finished[worker] - min(finished) <= lead + 1, Lab08Hint.ONE_MORE),
    (lambda finished, worker, lead: max(finished) - finished[worker] <= lead, Lab08Hint.AGAINST_FASTEST),
    (
        lambda finished, worker, lead: finished[worker] - max(_others(finished, worker)) <= lead,
        Lab08Hint.AGAINST_FASTEST_OTHER,
    ),
    (
        lambda finished, worker, lead: finished[worker] - sorted(finished)[len(finished) // 2] <= lead,
        Lab08Hint.AGAINST_MIDDLE,
    ),
    (lambda finished, worker, lead: finished[worker] - float(np.median(finished)) <= lead, Lab08Hint.AGAINST_MIDDLE),
    (
        lambda finished, worker, lead: finished[worker] * len(finished) - sum(finished) <= lead * len(finished),
        Lab08Hint.AGAINST_MEAN,
    ),
]
"""Usual mistakes, and their hints."""


def _drawn_states(generator: np.random.Generator) -> list[tuple[list[int], int, int]]:
    """Just allowed, just forbidden and far away, for leads from 0 on; in the last one all but one are far ahead."""
    states = []
    for lead in (0, 1, 2, 4):
        for ahead in (0, lead, lead + 1, lead + 3):
            lowest, workers = int(generator.integers(0, 9)), int(generator.integers(3, 7))
            finished = generator.integers(lowest + 1, lowest + lead + 3, workers)
            slowest, worker = generator.choice(workers, 2, replace=False)
            finished[slowest], finished[worker] = lowest, lowest + ahead
            states.append((finished.tolist(), int(worker), lead))
    return [*states, ([7, 7, 2, 7], int(generator.choice([0, 1, 3])), 2), ([9, 0, 8], 0, 2), ([6, 0, 1, 8, 1], 0, 2)]


def judge_limits(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A third of the points for each number."""
    judge = NumberJudge("limits", NAMES)
    for bounded in (EXAMPLE, _drawn(generator), LEAD_OF_0, ONE_WORKER):
        try:
            numbers = answer.call("limits", *bounded)
        except Raised as error:
            return error_verdict(error, f"for {bounded}: ")
        if problem := judge.compare(numbers, _expected(bounded, numbers, answer), str(bounded)):
            return problem
    return judge.verdict()


def _expected(bounded: BoundedWorkers, numbers: Plain, answer: Answer) -> dict[str, Expected]:
    by_name = numbers if isinstance(numbers, dict) else {}
    values = limits(*bounded)
    if len(bounded.seconds) == 1:
        alone = dict.fromkeys(NAMES, Lab08Hint.WAITS_FOR_NOBODY) | {NAMES[0]: Lab08Hint.NO_OTHERS}
        return {name: Expected(values[name], [], alone[name]) for name in NAMES}
    mistakes = _mistakes(bounded)
    otherwise: dict[str, AnyHint] = {
        name: Lab08Hint.NEAR_THE_RATE
        if is_near(number(by_name.get(name)), values[name], NEAR)
        else Lab08Hint.RATE_OTHERWISE
        for name in NAMES[1:]
    }
    staleness = number(by_name.get(NAMES[0]))
    if not is_near(staleness, values[NAMES[0]]) and _changes_with_speeds(answer, bounded, staleness):
        mistakes[NAMES[0]], otherwise[NAMES[0]] = [], Lab08Hint.BY_SPEEDS
    else:
        otherwise[NAMES[0]] = Lab08Hint.STALENESS_LIMIT_OTHERWISE
    return {name: Expected(values[name], mistakes[name], otherwise[name]) for name in NAMES}


def _changes_with_speeds(answer: Answer, bounded: BoundedWorkers, staleness: float | None) -> bool:
    """Whether this largest staleness becomes another one for as many equal workers."""
    try:
        numbers = answer.call("limits", [1.0] * len(bounded.seconds), bounded.lead)
    except AnswerError:
        return False
    return isinstance(numbers, dict) and not is_near(number(numbers.get(NAMES[0])), staleness)


def _drawn(generator: np.random.Generator) -> BoundedWorkers:
    workers, lead = int(generator.integers(5, 9)), int(generator.integers(3, 6))
    return BoundedWorkers([round(float(seconds), 2) for seconds in generator.uniform(0.1, 2, workers)], lead)


def _mistakes(bounded: BoundedWorkers) -> dict[str, Mistakes]:
    seconds, lead = bounded
    workers, (_, unbounded, with_bound) = len(seconds), limits(*bounded).values()
    of_mean = workers / float(np.mean(seconds))
    rates: Mistakes = [
        (workers / min(seconds), Lab08Hint.FASTEST_PACE),
        *((rate, Lab08Hint.RATE_OF_ONE) for rate in (1 / max(seconds), 1 / min(seconds), unbounded / workers)),
        (1 / unbounded, Lab08Hint.SECONDS_NOT_RATE),
        (max(seconds), Lab08Hint.SECONDS_NOT_RATE),
        (sum(seconds), Lab08Hint.SECONDS_NOT_RATE),
    ]
    return {
        "largest staleness": [
            *([(0.0, Lab08Hint.LEAD_OF_0)] if lead == 0 else []),
            (float(lead), Lab08Hint.LEAD_ITSELF),
            ((workers - 1) * (lead + 1.0), Lab08Hint.ONE_SIDE),
            ((workers - 1) * float(lead), Lab08Hint.ONE_SIDE),
            ((workers - 1) * 2.0 * lead, Lab08Hint.IN_FLIGHT),
            (workers * (2.0 * lead + 1), Lab08Hint.ALL_WORKERS),
            *((float(workers) * each, Lab08Hint.ALL_WORKERS) for each in (lead, lead + 1, 2 * lead) if each > 1),
            (workers - 1.0, Lab08Hint.MEAN_FOR_LARGEST),
            (float(workers), Lab08Hint.NO_LEAD),
            (float(workers**2), Lab08Hint.NO_LEAD),
            *((2.0 * lead + each, Lab08Hint.ONE_OTHER) for each in (1, 0, 2)),
            (lead + 1.0, Lab08Hint.LEAD_ITSELF),
        ],
        "without a bound": [(with_bound, Lab08Hint.SLOWEST_PACE), (of_mean, Lab08Hint.MEAN_SECONDS), *rates],
        "with the bound": [
            (unbounded, Lab08Hint.UNBOUNDED_RATE),
            (of_mean, Lab08Hint.MEAN_UNDER_BOUND),
            *rates,
            *(
                (gradients / max(seconds), Lab08Hint.LEAD_EACH_TIME)
                for gradients in (workers * (lead + 1), workers * lead, workers + lead, 1 + (workers - 1) * (lead + 1))
            ),
            *(
                (rate / each, Lab08Hint.LEAD_DIVIDES)
                for rate in (unbounded, with_bound)
                for each in (lead + 1, lead)
                if each
            ),
        ],
    }
