"""Mistakes as changes of the right program's text: the lines that a student who makes them would have written."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from distlab.labs.by_programs import Mistake, Text, changed

Change: TypeAlias = tuple[str, str]
"""A part of the text, and what stands there instead."""


def mistakes(
    text: str, table: Mapping[Text, Sequence[Sequence[Change]]], parts: Sequence[str] = (), **names: Any
) -> list[Mistake]:
    """By hint the programs that it is for, each as its changes of the text; for these parts of an exercise, or for all.

    The programs know `math`, `np` and the names.
    """
    return [
        Mistake(dict.fromkeys(parts, hint) if parts else hint, changed(text, *changes, **names))
        for hint, programs in table.items()
        for changes in programs
    ]
