"""What a judge says about an answer: a verdict, with the hint that leads the student on."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, NamedTuple

from distlab.labs.answer_errors import sentence


class State(StrEnum):
    """How far an answer is."""

    RIGHT = "right"
    WRONG = "wrong"
    NOT_DONE = "not done yet"


RIGHT, WRONG, NOT_DONE = State.RIGHT, State.WRONG, State.NOT_DONE


class Picture(NamedTuple):
    """A drawing as SVG text, and what it shows in words."""

    svg: str
    description: str


def picture(draw: Callable[[], Any], description: str, wrong: tuple[float, float] | None = None) -> Picture:
    """The figure that `draw` gives, in the course's style, with an exclamation mark at what is `wrong` in its axes."""
    import matplotlib.pyplot as plt  # here, since it takes a second and is seldom needed

    from distlab.draw.style import INK, STYLE, svg

    with plt.rc_context(STYLE):  # a lab's notebook need not ask for it
        figure = draw()
        if wrong:
            box = {"boxstyle": "circle", "facecolor": INK}
            figure.axes[0].annotate("!", wrong, (0, 9), textcoords="offset points", color="white", bbox=box)
        made = Picture(svg(figure, description), description)
    plt.close(figure)  # or a notebook shows it once more
    return made


@dataclass(frozen=True)
class Verdict:
    """RIGHT, WRONG or NOT_DONE; a hint for the student; the share of the points, 0 to 1; how to draw what happened.

    `context` comes before the hint, and says where it holds; `parts`, after it, are the verdicts on the parts that are
    not right yet, each with the names of those of which it holds; `below` is said last. `hints` are those of mistakes.
    `waits`: other parts must be right first. `fault` is the error of a judge that could not cope with an answer, which
    is for the instructor to look at.
    """

    state: State
    hint: str = ""
    share: float = 0.0
    picture: Callable[[], Picture] | None = None
    fault: str | None = None
    hints: tuple[Any, ...] = ()
    context: str = ""
    parts: tuple[tuple[str, "Verdict"], ...] = ()
    below: str = ""
    waits: bool = False

    @property
    def is_right(self) -> bool:
        """Whether nothing is left to do."""
        return self.state == RIGHT

    @property
    def text(self) -> str:
        """All that is said."""
        lines = [self.context + self.hint, *(f"{names}: {part}" for names, part in self.parts)]
        return "\n".join([*lines, self.below] if self.below else lines)

    def __str__(self) -> str:
        return f"{self.state}: {self.text}" if self.text else str(self.state)


def right(text: str = "", picture: Callable[[], Picture] | None = None) -> Verdict:
    """The answer is complete; `text` may say what was reached."""
    return Verdict(RIGHT, text, 1.0, picture)


def wrong(hint: str, share: float = 0.0, picture: Callable[[], Picture] | None = None, context: str = "") -> Verdict:
    """The answer has a mistake, which the hint fits; `context`, before it, says where.

    `share` of the points is given all the same.
    """
    if not 0 <= share < 1:
        raise ValueError(f"a wrong answer gets a share from 0 to below 1 of the points, not {share}")
    return Verdict(WRONG, hint, share, picture, context=context)


def not_done(why: str = "") -> Verdict:
    """The student has not begun."""
    return Verdict(NOT_DONE, sentence(why))


def waiting_for(parts: str) -> Verdict:
    """The verdict on a part that counts only after other parts."""
    return Verdict(NOT_DONE, f"{parts} must be right first", waits=True)


def first(*checks: tuple[object, str]) -> str | None:
    """The text of the first condition that holds."""
    return next((text for holds, text in checks if holds), None)


def hinted(hints: Mapping[str, str | None]) -> Verdict:
    """The verdict on an exercise of independent parts, of which those with a hint are wrong."""
    return parts({part: right() if hint is None else wrong(hint) for part, hint in hints.items()})


def parts(verdicts: Mapping[str, Verdict], weights: Mapping[str, float] | None = None) -> Verdict:
    """The verdict on an exercise of independent parts; each hint follows the name of its part.

    A text that is the same for several parts is printed once, even if the contexts differ.
    `weights` say how much each part counts; without them all count equally.
    """
    weights = weights or dict.fromkeys(verdicts, 1)
    open_ones = {name: verdict for name, verdict in verdicts.items() if not verdict.is_right}
    if not open_ones:
        return right(" ".join(verdict.text for verdict in verdicts.values() if verdict.text))
    if all(verdict.state == NOT_DONE for verdict in verdicts.values()):
        return not_done(next(iter(verdicts.values())).text)
    share = sum(weights[name] * verdict.share for name, verdict in verdicts.items()) / sum(weights.values())
    alike: dict[str, list[str]] = {}
    for name, verdict in open_ones.items():
        alike.setdefault(str(verdict), []).append(name)
    told: list[tuple[str, Verdict]] = []
    names_of_hint: dict[str, str] = {}
    for names in alike.values():
        verdict, listed = verdicts[names[0]], _listed(names)
        before = names_of_hint.setdefault(verdict.hint, listed)
        reference = "the same as for {}.".format(before if before.startswith('"') else f'"{before}"')
        if before != listed and len(reference) < len(verdict.hint):
            verdict = replace(verdict, hint=reference)
        told.append((listed, verdict))
    count = len(verdicts) - len(open_ones)
    text = f"{count} of {len(verdicts)} parts {'is' if count == 1 else 'are'} right."
    hints = tuple(hint for verdict in open_ones.values() for hint in verdict.hints)
    return Verdict(WRONG, text, share, hints=hints, parts=tuple(told))


def _listed(names: Sequence[str]) -> str:
    """Names in one line; several are quoted if one of them contains a comma."""
    if len(names) > 1 and any("," in name for name in names):
        names = [f'"{name}"' for name in names]
    return ", ".join(names)
