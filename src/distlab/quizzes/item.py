"""An item: a question with the right answer and the wrong ones (distractors), each with the mistake behind it.

A template is a function that takes `Numbers` and returns an `Item` by `number`, `one_of`, `one_number_of` or
`several_of`. Texts are plain, with `code` in backticks.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from distlab.quizzes.numbers import Numbers, amount

TOLERANCE = 0.02  # what an answer may be off, for rounding by hand
LEAST_DIFFERENCE = 0.05  # by which a wrong number differs from the right one


class Kind(StrEnum):
    """How an item is answered."""

    NUMBER = "number"
    ONE = "one of four"
    SEVERAL = "several"


@dataclass(frozen=True)
class Option:
    """An answer that somebody may give; `mistake` names the thinking behind a wrong one.

    value: the number, for items that ask for one.
    """

    text: str
    is_right: bool
    explanation: str
    mistake: str = ""
    value: float | None = None


@dataclass(frozen=True)
class Item:
    """A question as it is asked. `name`, `chapter` and `values` are those of the template and of what it drew.

    text: the question.  block: lines to be shown as they are, such as a log or a table; may be empty.
    unit: of a number that is to be entered.  tolerance: how far such a number may be off, relative to the right one.
    """

    kind: Kind
    text: str
    options: tuple[Option, ...]
    block: str = ""
    unit: str = ""
    tolerance: float = 0.0
    name: str = ""
    chapter: str = ""
    values: Mapping[str, object] = field(default_factory=dict)

    @property
    def right(self) -> tuple[Option, ...]:
        """The right options: exactly one unless several can be chosen."""
        return tuple(option for option in self.options if option.is_right)

    @property
    def wrong(self) -> tuple[Option, ...]:
        """The distractors."""
        return tuple(option for option in self.options if not option.is_right)

    @property
    def is_ambiguous(self) -> bool:
        """Two options read alike, or a wrong number is so close to the right one that rounding decides."""
        if len({option.text for option in self.options}) < len(self.options):
            return True
        right = self.right[0].value
        if right is None:
            return False
        least = LEAST_DIFFERENCE * abs(right) if self.tolerance else 0.0
        return any(option.value is None or abs(option.value - right) <= least for option in self.wrong)


Template = Callable[[Numbers], Item]


@dataclass(frozen=True)
class Wrong:
    """A wrong answer: a number or a text, the name of the mistake that leads to it, and why it is wrong."""

    answer: float | str
    mistake: str
    explanation: str


def number(
    text: str, answer: float, unit: str, why: str, *wrong: Wrong, exact: bool = False, block: str = "", scale: float = 1
) -> Item:
    """A number to enter, in `unit`; `exact` if it must be met without tolerance, as a count must.

    scale: what the answers are multiplied with, such as 1e3 for seconds that are asked for in ms.
    """
    right = _numeric(scale * float(answer), unit, True, why)
    options = (right, *(_wrong_number(mistake, unit, scale) for mistake in wrong))
    return Item(Kind.NUMBER, text, options, block, unit, 0.0 if exact else TOLERANCE)


def one_number_of(
    text: str, answer: float, unit: str, why: str, *wrong: Wrong, exact: bool = False, block: str = "", scale: float = 1
) -> Item:
    """One of several numbers to choose; the arguments are those of `number`."""
    right = _numeric(scale * float(answer), unit, True, why)
    options = (right, *(_wrong_number(mistake, unit, scale) for mistake in wrong))
    return Item(Kind.ONE, text, options, block, tolerance=0.0 if exact else TOLERANCE)


def one_of(text: str, right: str, why: str, *wrong: Wrong, block: str = "") -> Item:
    """One of several texts to choose."""
    options = (Option(right, True, why), *(_wrong_text(mistake) for mistake in wrong))
    return Item(Kind.ONE, text, options, block)


def several_of(text: str, right: Mapping[str, str], *wrong: Wrong, block: str = "") -> Item:
    """All right ones among several texts to choose; `right` has the explanation of each."""
    options = (*(Option(answer, True, why) for answer, why in right.items()), *(_wrong_text(each) for each in wrong))
    return Item(Kind.SEVERAL, text, options, block)


def _numeric(value: float, unit: str, is_right: bool, explanation: str, mistake: str = "") -> Option:
    return Option(amount(value, unit), is_right, explanation, mistake, value)


def _wrong_number(wrong: Wrong, unit: str, scale: float) -> Option:
    return _numeric(scale * float(wrong.answer), unit, False, wrong.explanation, wrong.mistake)


def _wrong_text(wrong: Wrong) -> Option:
    return Option(str(wrong.answer), False, wrong.explanation, wrong.mistake)
