"""Numbers that students give, next to the right ones and those that usual mistakes give."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from distlab.labs.plain_data import Plain
from distlab.labs.verdict import NOT_DONE, AnyHint, Hint, Picture, Verdict, not_done, parts, right, wrong

TOLERANCE = 1e-6

Mistakes = Sequence[tuple[float | None, AnyHint]]
"""What a mistake gives, and its hint; a mistake that is not possible in this case gives None."""


class NumberHint(Hint):
    """What is said about numbers in every lab."""

    NAMES = "`{function}` must give a dictionary with the names {names}; {problem}."
    NOT_A_NUMBER = "this is not a number."
    ROUNDED = "this is the right number, but not exact. Is it rounded, or computed in float32?"
    FOLLOWS = "it follows from the wrong {source}."


def number(value: Plain) -> float | None:
    """A real number as float, also out of an array without dimensions; None for all else, truth values included."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def two_numbers(pair: Plain) -> tuple[float, float] | None:
    """A tuple, list or array of two finite numbers; None for all else."""
    if isinstance(pair, np.ndarray):
        pair = pair.tolist()
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        return None
    first, second = map(number, pair)
    if first is None or second is None or not (math.isfinite(first) and math.isfinite(second)):
        return None
    return first, second


def is_near(value: float | None, expected: float | None, tolerance: float = TOLERANCE, absolute: float = 0.0) -> bool:
    """Whether two numbers differ by no more than that part of the expected one, or that much; None is near None."""
    if value is None or expected is None:
        return value is expected
    allowed = max(tolerance * abs(expected), absolute)
    return value == expected or (math.isfinite(expected) and abs(value - expected) <= allowed)


def is_rounded(value: float | None, expected: float | None) -> bool:
    """Whether a number is the expected one rounded to some places, or right to five digits at least."""
    if value is None or expected is None or not math.isfinite(value) or value == 0:
        return False
    return is_near(value, expected, 1e-5) or value in [round(expected, places) for places in range(1, 9)]


def hint_of(value: float | None, mistakes: Mistakes, tolerance: float = TOLERANCE) -> AnyHint | None:
    """The hint of the first mistake that gives this number."""
    return next((hint for mistaken, hint in mistakes if is_near(value, mistaken, tolerance)), None)


@dataclass(frozen=True)
class Expected:
    """A number that is asked for; None if the right answer is None.

    mistakes: what usual mistakes give instead.  otherwise: the hint for every other number.
    """

    value: float | None
    mistakes: Mistakes
    otherwise: AnyHint
    tolerance: float = TOLERANCE
    absolute: float = 0.0

    def hint_for(self, answer: Plain) -> AnyHint | None:
        """What leads on a student who gives this; None if it is right."""
        value = number(answer)
        if is_near(value, self.value, self.tolerance, self.absolute) and (value is not None or answer is None):
            return None
        if value is None:
            return NumberHint.NOT_A_NUMBER
        if (hint := hint_of(value, self.mistakes, self.tolerance)) is not None:
            return hint
        return NumberHint.ROUNDED if is_rounded(value, self.value) else self.otherwise


class NumberJudge:
    """Judges the numbers that a function gives by name, case by case; of each number the first wrong case counts.

    Call `compare` for every case, return at once what it gives unless that is None, and in the end return `verdict()`.
    """

    def __init__(self, function: str, names: Sequence[str]) -> None:
        """`function` is the student's; `names` are those of the numbers, in the order of the verdict."""
        self._function, self._names = function, tuple(names)
        self._mistakes: dict[str, Verdict] = {}

    def compare(self, answer: Plain, expected: Mapping[str, Expected], case: str) -> Verdict | None:
        """Note which numbers are wrong; a verdict at once if these are no numbers by name.

        `case` says in words what was asked. For a number that needs more than an expected value, call `note`.
        """
        if problem := self.problem_of_form(answer):
            return problem
        assert isinstance(answer, dict)
        for name, number_expected in expected.items():
            hint = number_expected.hint_for(answer[name])
            if hint is None:
                continue
            value = number(answer[name])
            if answer[name] is None:
                self.note(name, not_done("this is None"))
            else:
                self.note(name, wrong(hint, context="" if value is None else f"{value:.6g} for {case}: "))
        return None

    def follow(self, answer: Plain, following: Mapping[str, tuple[str, float | None]]) -> None:
        """Say of a wrong number only that it follows from another wrong one, where it does.

        `following`: by name, from which number it follows, and what follows from the answer's own.
        """
        assert isinstance(answer, dict)
        for name, (source, value) in following.items():
            is_wrong = name in self._mistakes and source in self._mistakes
            if is_wrong and value is not None and is_near(number(answer[name]), value):
                self._mistakes[name] = wrong(NumberHint.FOLLOWS.says(source=source))

    def problem_of_form(self, answer: Plain) -> Verdict | None:
        """What is said of an answer that is not a dictionary with all names; None if it is one."""
        return problem_of_names(self._function, self._names, answer)

    def note(self, name: str, verdict: Verdict) -> None:
        """The verdict on one number, unless an earlier case has given it one."""
        self._mistakes.setdefault(name, verdict)

    def verdict(
        self,
        praise: str = "",
        picture: Callable[[], Picture] | None = None,
        weights: Mapping[str, float] | None = None,
    ) -> Verdict:
        """On all numbers in all cases; `praise` and `picture` are for a right answer, `weights` are for `parts`."""
        if not self._mistakes:
            return right(praise, picture)
        if all(name in self._mistakes and self._mistakes[name].state == NOT_DONE for name in self._names):
            return not_done(f"`{self._function}` gives a dictionary in which all numbers are None")
        return parts({name: self._mistakes.get(name, right()) for name in self._names}, weights=weights)


def problem_of_names(function: str, names: Sequence[str], answer: Plain) -> Verdict | None:
    """What is said of an answer of `function` that is not a dictionary with all names; None if it is one."""
    if isinstance(answer, dict) and all(name in answer for name in names):
        return None
    if not isinstance(answer, dict):
        problem = "yours gives no dictionary"
    else:
        missing = [name for name in names if name not in answer]
        unknown = [str(name) for name in answer if name not in names]
        problem = f"{_quoted(missing)} {'is' if len(missing) == 1 else 'are'} missing"
        problem += f", and {_quoted(unknown)} {'is' if len(unknown) == 1 else 'are'} unknown" if unknown else ""
    return wrong(NumberHint.NAMES.says(function=function, names=_quoted(names), problem=problem))


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def described(answer: Plain) -> str:
    """What a function gave, in words: "a list of 4 numbers", "a list of 2 items, of which item 0 is an array of …"."""
    if number(answer) is not None:
        return "one number"
    if isinstance(answer, np.ndarray):
        return f"an array of shape {answer.shape}"
    if isinstance(answer, (list, tuple)):
        return _described_list(list(answer), type(answer).__name__)
    if answer is None:
        return "None"
    return f"a {'text' if isinstance(answer, str) else type(answer).__name__}"


def _described_list(items: list[Plain], kind: str) -> str:
    if not items:
        return f"an empty {kind}"
    for place, item in enumerate(items):
        if number(item) is None:
            return f"a {kind} of {_many(len(items), 'item')}, of which item {place} is {described(item)}"
    return f"a {kind} of {_many(len(items), 'number')}"


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
