"""What a student's function gave instead of the numbers that it was asked for, in words."""

import numpy as np

from distlab.labs.number_judge import number
from distlab.labs.plain_data import Plain


def described(answer: Plain) -> str:
    """For example "a list of 4 numbers" or "a list of 5 items, of which item 0 is an array of shape (8,)"."""
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
