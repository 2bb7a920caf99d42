"""The layout of a puzzle: a list of names, those of a serial program's lines in their order and cards between them."""

from collections.abc import Collection

import numpy as np

from distlab.labs.answer_errors import AnswerError
from distlab.labs.plain_data import Plain

_NOT_NAMES = "`program` is a list of names, those of the lines and those of the cards."


def layout_of(
    program: Plain, lines: Collection[str], cards: Collection[str], repeated: Collection[str] = ()
) -> list[str]:
    """The list as a layout; the cards in `repeated` may be there more than once.

    Raises AnswerError, which says what keeps it from being one.
    """
    if isinstance(program, np.ndarray):
        program = program.tolist()
    if not isinstance(program, (list, tuple)):
        raise AnswerError(_NOT_NAMES)
    layout = [name for name in program if isinstance(name, str)]
    if len(layout) < len(program):
        raise AnswerError(_NOT_NAMES)
    for name in layout:
        if name not in lines and name not in cards:
            raise AnswerError(f"{name!r} is neither a line nor a card.")
        if layout.count(name) > 1 and name not in repeated:
            raise AnswerError(f"{name!r} is there more than once.")
    if [name for name in layout if name in lines] != list(lines):
        raise AnswerError("All serial lines must be there, in their order: cards go between them.")
    return layout
