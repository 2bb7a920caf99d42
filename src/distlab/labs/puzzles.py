"""Puzzles: cards between the lines of a serial program, judged step by step by what other layouts give."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from distlab.labs.answer import Answer
from distlab.labs.answer_errors import AnswerError, NotDone
from distlab.labs.by_programs import ByPrograms, Hint, Mistake
from distlab.labs.puzzle_layout import Layout, layout_of
from distlab.labs.verdict import Advice


def placed(answer: Answer, lines: Collection[str], cards: Collection[str], repeated: Collection[str] = ()) -> Layout:
    """The layout `program` of an answer. Raises AnswerError where it is none, NotDone without any card."""
    layout = layout_of(answer.value("program"), lines, cards, repeated)
    if not isinstance(layout, list):
        raise AnswerError(Advice.of(layout).text)
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
    program: Any,
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
