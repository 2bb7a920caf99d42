"""Numbers that students give, beside the right ones and those that usual mistakes give."""

import math
from collections.abc import Iterable

import numpy as np

Mistakes = Iterable[tuple[float | None, str]]
"""What a mistake gives, and its hint."""


def number(given: object) -> float | None:
    """A real number as float, also out of an array without dimensions; None for all else, truth values included."""
    if isinstance(given, np.ndarray) and given.ndim == 0:
        given = given.item()
    return float(given) if isinstance(given, (int, float)) and not isinstance(given, bool) else None


def two_numbers(given: object) -> tuple[float, float] | None:
    """A tuple, list or array of two finite numbers; None for all else."""
    if isinstance(given, np.ndarray):
        given = given.tolist()
    if not isinstance(given, (tuple, list)) or len(given) != 2:
        return None
    first, second = map(number, given)
    if first is None or second is None or not (math.isfinite(first) and math.isfinite(second)):
        return None
    return first, second


def is_near(given: float | None, wanted: float | None, tolerance: float = 1e-6) -> bool:
    """Whether two numbers differ by no more than that part of the wanted one; None is near to None alone."""
    if given is None or wanted is None:
        return given is wanted
    return given == wanted or (math.isfinite(wanted) and abs(given - wanted) <= tolerance * abs(wanted))


def hint_of(given: float | None, mistakes: Mistakes, tolerance: float = 1e-6) -> str | None:
    """The hint of the first mistake that gives this number."""
    return next((hint for value, hint in mistakes if is_near(given, value, tolerance)), None)
