"""The layout of a puzzle: a list of names, those of a serial program's lines in their order and cards between them."""

from collections.abc import Collection

import numpy as np

from distlab.labs.plain_data import Plain
from distlab.labs.verdict import AnyHint, Hint

Layout = list[str]


class LayoutHint(Hint):
    """What is said about a list that is no layout."""

    NOT_NAMES = "`program` is a list of names, those of the lines and those of the cards."
    UNKNOWN_NAME = "{name!r} is neither a line nor a card."
    NAME_TWICE = "{name!r} is there more than once."
    LINES_CHANGED = "All serial lines must be there, in their order: cards go between them."


def layout_of(
    program: Plain, lines: Collection[str], cards: Collection[str], repeated: Collection[str] = ()
) -> Layout | AnyHint:
    """The list as a layout, or what keeps it from being one; the cards in `repeated` may be there more than once."""
    if isinstance(program, np.ndarray):
        program = program.tolist()
    if not isinstance(program, (list, tuple)):
        return LayoutHint.NOT_NAMES
    layout = [name for name in program if isinstance(name, str)]
    if len(layout) < len(program):
        return LayoutHint.NOT_NAMES
    for name in layout:
        if name not in lines and name not in cards:
            return LayoutHint.UNKNOWN_NAME.says(name=name)
        if layout.count(name) > 1 and name not in repeated:
            return LayoutHint.NAME_TWICE.says(name=name)
    if [name for name in layout if name in lines] != list(lines):
        return LayoutHint.LINES_CHANGED
    return layout
