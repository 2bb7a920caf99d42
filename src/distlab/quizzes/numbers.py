"""The numbers of an item: drawn from a generator by name, and written as a person would round them."""

import math
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

Value = TypeVar("Value")
SIGNIFICANT_DIGITS = 3
SINGULAR = {"batches": "batch", "processes": "process"}
UNCHANGED = ("s", "ms", "times")


class Numbers:
    """Draws the numbers of an item and remembers them by name in `drawn`."""

    def __init__(self, generator: np.random.Generator) -> None:
        self._generator = generator
        self.drawn: dict[str, object] = {}

    def pick(self, name: str, values: Sequence[Value]) -> Value:
        """One of the values, all equally likely."""
        value = values[int(self._generator.integers(len(values)))]
        self.drawn[name] = value
        return value

    def several(self, name: str, values: Sequence[Value], count: int) -> list[Value]:
        """`count` different ones of the values, in random order."""
        chosen = [values[place] for place in self._generator.permutation(len(values))[:count]]
        self.drawn[name] = chosen
        return chosen

    def shuffled(self, values: Sequence[Value]) -> tuple[Value, ...]:
        """All values in random order; not remembered."""
        return tuple(values[place] for place in self._generator.permutation(len(values)))


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
