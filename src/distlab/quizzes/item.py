"""An item: a question with the right answer and the wrong ones, each with the mistake behind it.

A template is a function that fills an item in: what it asks, then what may be answered, and why that is right or wrong.
The other parameters are its numbers; their defaults say what each is drawn from.

    def steps(item: Item, images: int = pick(8_000, 60_000), batch: int = pick(50, 100)) -> None:
        item.enter(f"{images:,} images, batches of {batch}. How many steps has an epoch?")
        item.right(images // batch, "steps").why("Each image is used once.")
        item.wrong(images, "One image per step").why("A step takes a batch.")

Texts are plain, with `code` in backticks; where a text breaks its line makes no difference. A right answer that is an
int is a count, which must be met exactly; a float may be off a little. Shares, such as 0.25, are shown in "%".
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeVar, cast

import numpy as np

TOLERANCE = 0.02  # what an answer may be off, for rounding by hand
LEAST_DIFFERENCE = 0.05  # by which a wrong number differs from the right one
SIGNIFICANT_DIGITS = 3
SINGULAR = {"batches": "batch", "processes": "process", "copies": "copy"}
UNCHANGED = ("s", "ms", "times")

Value = TypeVar("Value")
Template = Callable[..., None]


class Kind(StrEnum):
    """How an item is answered."""

    NUMBER = "number"
    ONE = "one of four"
    SEVERAL = "several"


@dataclass
class Option:
    """An answer that somebody may give. `mistake` names the thinking behind a wrong one; a number has a `value`."""

    text: str
    is_right: bool
    mistake: str = ""
    value: float | None = None
    explanation: str = ""

    def why(self, explanation: str) -> None:
        """Say why the answer is right or wrong."""
        self.explanation = _joined(explanation)


@dataclass
class Item:
    """A question as it is asked. `name`, `chapter` and `values` are those of the template and of what was drawn.

    block: lines to be shown as they are, such as a log or a table; may be empty.  unit: of numbers.
    tolerance: how far a number that is entered may be off, relative to the right one.
    """

    name: str
    chapter: str
    values: Mapping[str, object]
    text: str = ""
    block: str = ""
    unit: str = ""
    tolerance: float = 0.0
    is_entered: bool = False
    options: list[Option] = field(default_factory=list)

    def enter(self, text: str) -> None:
        """Ask for a number to be entered."""
        self.text, self.is_entered = _joined(text), True

    def choose(self, text: str) -> None:
        """Ask for the right answer, or for all right ones if there are several."""
        self.text = _joined(text)

    def right(self, answer: float | str, unit: str = "") -> Option:
        """Add a right answer: a text, or a number in a unit, which is then that of the wrong ones too."""
        self.unit = unit
        self.tolerance = 0.0 if isinstance(answer, str | int) else TOLERANCE
        return self._option(answer, True, "")

    def wrong(self, answer: float | str, mistake: str) -> Option:
        """Add an answer to which a mistake leads; after the right one."""
        return self._option(answer, False, mistake)

    def _option(self, answer: float | str, is_right: bool, mistake: str) -> Option:
        if isinstance(answer, str):
            option = Option(_joined(answer), is_right, mistake)
        else:
            value = float(100 * answer if self.unit == "%" else answer)
            option = Option(amount(value, self.unit), is_right, mistake, value)
        self.options.append(option)
        return option

    @property
    def kind(self) -> Kind:
        """How it is answered: by a number, by one option or by several."""
        return Kind.NUMBER if self.is_entered else Kind.ONE if len(self.right_options) == 1 else Kind.SEVERAL

    @property
    def right_options(self) -> list[Option]:
        """The right options: exactly one unless several can be chosen."""
        return [option for option in self.options if option.is_right]

    @property
    def wrong_options(self) -> list[Option]:
        """The distractors."""
        return [option for option in self.options if not option.is_right]

    @property
    def is_ambiguous(self) -> bool:
        """Two options read alike, or a wrong number is so close to the right one that rounding decides."""
        if len({option.text for option in self.options}) < len(self.options):
            return True
        right = self.right_options[0].value
        least = LEAST_DIFFERENCE * abs(right or 0.0) if self.tolerance else 0.0
        values = [each.value for each in self.wrong_options if each.value is not None]
        return right is not None and any(abs(value - right) <= least for value in values)


@dataclass(frozen=True)
class Choices:
    """What a number of a template is drawn from; `count` different ones together if it is given."""

    values: tuple[Any, ...]
    count: int = 0

    def draw(self, generator: np.random.Generator) -> object:
        """One of the values, all equally likely, or several in random order."""
        if self.count:
            return tuple(self.values[place] for place in generator.permutation(len(self.values))[: self.count])
        return self.values[int(generator.integers(len(self.values)))]


def pick(*values: Value) -> Value:
    """A parameter of a template that is one of the values."""
    return cast(Value, Choices(values))


def pick_several(count: int, *values: Value) -> tuple[Value, ...]:
    """A parameter of a template that has `count` different ones of the values, in random order."""
    return cast(tuple[Value, ...], Choices(values, count))


def other(pair: Mapping[str, Value], key: str) -> Value:
    """The value of that one of two keys which is not `key`."""
    (value,) = (value for name, value in pair.items() if name != key)
    return value


def figure(value: float) -> str:
    """A number with three significant digits at least, thousands separated; whole numbers and hundreds in full."""
    if not math.isfinite(value):
        return "infinitely many" if value > 0 else "none"
    if value == int(value):
        return f"{value:,.0f}"
    places = max(0, SIGNIFICANT_DIGITS - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def amount(value: float, unit: str) -> str:
    """A number with its unit, such as "2.5 GB" or "1 step"."""
    text = figure(value)
    if text == "1" and unit.endswith("s") and "/" not in unit and unit not in UNCHANGED:
        unit = SINGULAR.get(unit, unit.removesuffix("s"))
    return f"{text} {unit}".rstrip()


def _joined(text: str) -> str:
    return " ".join(text.split())
