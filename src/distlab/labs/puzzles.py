"""Puzzles: cards between the lines of a serial program, judged step by step by what other layouts give.

A layout is a list of names, those of the program's lines in their order and cards between them.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from distlab.labs.answer import Answer
from distlab.labs.answer_errors import AnswerError, NotDone
from distlab.labs.by_programs import ByPrograms, Hint, Mistake
from distlab.labs.plain_data import Plain

Layout = list[str]


def layout_of(program: Plain, lines: Collection[str], cards: Collection[str], repeated: Collection[str] = ()) -> Layout:
    """The list as a layout; the cards in `repeated` may be there more than once.

    Raises AnswerError, which says what keeps it from being one.
    """
    names = program.tolist() if isinstance(program, np.ndarray) else program
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        raise AnswerError("`program` is a list of names, those of the lines and those of the cards.")
    layout = [str(name) for name in names]
    for name in layout:
        if name not in lines and name not in cards:
            raise AnswerError(f"{name!r} is neither a line nor a card.")
        if layout.count(name) > 1 and name not in repeated:
            raise AnswerError(f"{name!r} is there more than once.")
    if [name for name in layout if name in lines] != list(lines):
        raise AnswerError("All serial lines must be there, in their order: cards go between them.")
    return layout


def placed(answer: Answer, lines: Collection[str], cards: Collection[str], repeated: Collection[str] = ()) -> Layout:
    """The layout `program` of an answer. Raises AnswerError where it is none, NotDone without any card."""
    layout = layout_of(answer.value("program"), lines, cards, repeated)
    if not any(name in cards for name in layout):
        raise NotDone("no card has been placed")
    return layout


def without(layout: Sequence[str], *cards: str) -> Layout:
    """The layout without these cards."""
    return [name for name in layout if name not in cards]


def put(layout: Sequence[str], card: str, before: str = "") -> Layout:
    """The layout with the card in another place, or at the end."""
    rest = without(layout, card)
    place = rest.index(before) if before else len(rest)
    return [*rest[:place], card, *rest[place:]]


def instead(layout: Sequence[str], card: str, replacement: str) -> Layout:
    """The layout with another card in the place of this one."""
    return [replacement if name == card else name for name in layout]


def puzzle_judge(
    program: Any,  # a layout: with `variable`, a judge compares values, not functions
    seen: Callable[[Answer], Mapping[str, Any]],
    steps: Sequence[str],
    otherwise: Hint,
    mistakes: Sequence[tuple[Hint, Any]],
) -> ByPrograms:
    """The judge of a puzzle: what is seen of a layout, by step, is what the right program gives, or a mistake's."""
    return ByPrograms(
        program,
        lambda generator: [()],
        variable="program",
        observe=lambda answer, case: seen(answer),
        said=lambda case: "",
        parts=steps,
        otherwise=otherwise,
        mistakes=[Mistake(*mistake) for mistake in mistakes],
    )
