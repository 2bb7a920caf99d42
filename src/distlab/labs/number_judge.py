"""Numbers that students give: which are numbers, near the right one, or rounded, and what else was given."""

import math
from collections.abc import Sequence

import numpy as np

from distlab.labs.plain_data import Plain

TOLERANCE = 1e-6


NOT_A_NUMBER = "this is not a number."
ROUNDED = "this is the right number, but not exact. Is it rounded, or computed in float32?"
FOLLOWS = "it follows from the wrong {}."


def number(value: Plain) -> float | None:
    """A real number as float, also one of NumPy's; None for all else, truth values included."""
    if isinstance(value, (np.ndarray, np.generic)) and value.ndim == 0:
        value = value.item()
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def numbers_of(value: Plain) -> list[float] | None:
    """A list, tuple or array of numbers as a list of floats; None for all else."""
    listed = value.tolist() if isinstance(value, np.ndarray) else value
    numbers = [number(item) for item in listed] if isinstance(listed, (list, tuple)) else [None]
    return None if None in numbers else [item for item in numbers if item is not None]


def are_two_numbers(pair: Plain) -> bool:
    """Whether it is a tuple, list or array of two finite numbers."""
    numbers = numbers_of(pair)
    return numbers is not None and len(numbers) == 2 and all(map(math.isfinite, numbers))


def is_near(value: float | None, expected: float | None, tolerance: float = TOLERANCE) -> bool:
    """Whether two numbers differ by no more than that part of the expected one; None is near None."""
    if value is None or expected is None:
        return value is expected
    return value == expected or (math.isfinite(expected) and abs(value - expected) <= tolerance * abs(expected))


def is_rounded(value: float | None, expected: float | None) -> bool:
    """Whether a number is the expected one rounded to some places, or right to five digits at least."""
    if value is None or expected is None or not math.isfinite(value) or value == 0:
        return False
    return is_near(value, expected, 1e-5) or value in [round(expected, places) for places in range(1, 9)]


def problem_of_names(function: str, names: Sequence[str], answer: Plain) -> str | None:
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
    return f"`{function}` must give a dictionary with the names {_quoted(names)}; {problem}."


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def described(answer: Plain) -> str:
    """What a function gave, in words: "a list of 4 numbers", "a list of 2 items, of which item 0 is an array of …"."""
    if number(answer) is not None:
        return "one number"
    if isinstance(answer, np.ndarray):
        return f"an array of shape {answer.shape}"
    kind = type(answer).__name__
    if not isinstance(answer, (list, tuple)):
        return {"NoneType": "None", "str": "a text"}.get(kind, f"a {kind}")
    for place, item in enumerate(answer):
        if number(item) is None:
            return f"a {kind} of {counted(len(answer), 'item')}, of which item {place} is {described(item)}"
    return f"a {kind} of {counted(len(answer), 'number')}" if answer else f"an empty {kind}"


def counted(number: int, noun: str) -> str:
    """Such as "1 node", "4 nodes" or "2 batches"."""
    return f"{number} {noun}{'' if number == 1 else 'es' if noun.endswith('ch') else 's'}"
