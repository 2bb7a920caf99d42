"""One number for each replica: those that a student's function gives, the right ones, and those of usual mistakes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from lab_04.hints import Lab04Hint
from numpy.typing import NDArray

from distlab.labs.answer import Answer
from distlab.labs.number_judge import NumberHint, described, is_near, is_rounded, number
from distlab.labs.part_cases import PartCase, judge_cases
from distlab.labs.plain_data import Plain
from distlab.labs.verdict import AnyHint, Verdict, right, wrong

TOLERANCE = 1e-9

Values = Sequence[float] | NDArray[np.float64]


@dataclass(frozen=True)
class Case:
    """One call of the function.

    part: the part of the exercise that it belongs to.  arguments: of the call.  said: the case in words.  counts: of
    the things (examples or words) on each replica.  values: the right ones, one for each replica.  mistakes: what usual
    mistakes give, each with its hint.  otherwise: the hint for all other values, which it gets.
    """

    part: str
    arguments: tuple[Any, ...]
    said: str
    things: str
    counts: Sequence[int]
    values: Values
    mistakes: Sequence[tuple[Values, AnyHint]]
    otherwise: Callable[[list[float]], AnyHint]

    def verdict(self, function: str, answer: Plain) -> Verdict:
        """On what the function gives in this case."""
        values = numbers(answer)
        if values is None or len(values) != len(self.values):
            count = len(self.values)
            return wrong(Lab04Hint.NO_LIST.says(function=function, count=count, got=described(answer)))
        if are_near(values, self.values):
            return right()
        return wrong(self._hint_on_infinite(values) or self._hint(values), context=self.said)

    def _hint_on_infinite(self, values: list[float]) -> AnyHint | None:
        """For a value that is nan or infinite, first for one on a replica that has something to take a mean of."""
        infinite = np.flatnonzero(~np.isfinite(values)).tolist()
        for replica in infinite:
            if count := self.counts[replica]:
                return Lab04Hint.NAN_WITH_DATA.says(
                    replica=replica, value=values[replica], count=count, things=self.things
                )
        return Lab04Hint.NOT_A_NUMBER.says(replica=infinite[0]) if infinite else None

    def _hint(self, values: list[float]) -> AnyHint:
        for mistaken, hint in self.mistakes:
            if are_near(values, mistaken):
                return hint
        if are_near(sorted(values), sorted(self.values)):
            return Lab04Hint.ANOTHER_ORDER
        pairs = zip(values, self.values, strict=True)
        if all(is_rounded(value, expected) or value == expected for value, expected in pairs):
            return NumberHint.ROUNDED
        return self.otherwise(values)


def judge(answer: Answer, function: str, cases: Sequence[Case]) -> Verdict:
    """An equal share of the points for each part; of a part the first wrong case counts."""

    def part_case(case: Case) -> PartCase:
        return PartCase(case.part, lambda: case.verdict(function, answer.call(function, *case.arguments)), case.said)

    return judge_cases(map(part_case, cases))


def listed(counts: Sequence[int]) -> str:
    """Counts in words: 5, 5 and 3."""
    *first, last = map(str, counts)
    return f"{', '.join(first)} and {last}"


def divisor(sums: Values, values: Values) -> float | None:
    """The one number by which all sums were divided to get these values; None if there is none."""
    total, total_value = float(np.sum(sums)), float(np.sum(values))
    if not total_value or not are_near(np.asarray(sums) / total, np.asarray(values) / total_value):
        return None
    return total / total_value


def numbers(answer: Plain) -> list[float] | None:
    """A list, tuple or array of numbers as a list of floats; None for all else."""
    if isinstance(answer, np.ndarray):
        answer = answer.tolist()
    if not isinstance(answer, (list, tuple)):
        return None
    values = [number(value) for value in answer]
    return None if any(value is None for value in values) else [value for value in values if value is not None]


def are_near(values: Values, reference: Values) -> bool:
    """Whether each number is near its reference, to a relative error of TOLERANCE; 0 is near nothing else."""
    return len(values) == len(reference) and all(
        is_near(float(value), float(expected), TOLERANCE) for value, expected in zip(values, reference, strict=True)
    )
