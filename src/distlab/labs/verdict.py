"""What a judge says about an answer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import NamedTuple


class State(StrEnum):
    """How far an answer is."""

    RIGHT = "right"
    WRONG = "wrong"
    NOT_DONE = "not done yet"


RIGHT, WRONG, NOT_DONE = State.RIGHT, State.WRONG, State.NOT_DONE


class Hint(Enum):
    """The hints of a lab are the members of a subclass: the name is the hint's id, the value its text.

    A text may have placeholders, as in "{sent} messages are sent": `says` fills them in.
    """

    def says(self, **values: object) -> "Advice":
        """The hint with its placeholders filled in."""
        return Advice(self, self.value.format(**values))


@dataclass(frozen=True)
class Advice:
    """A hint as the student reads it."""

    hint: Hint
    text: str


class Picture(NamedTuple):
    """A drawing as SVG text, and what it shows in words."""

    svg: str
    description: str


@dataclass(frozen=True)
class Verdict:
    """RIGHT, WRONG or NOT_DONE; a text for the student; the share of the points, 0 to 1; how to draw what happened.

    `hints` are the ids of the hints in the text. `fault` is the error of a judge that could not cope with an answer,
    which is for the instructor to look at.
    """

    state: State
    text: str = ""
    share: float = 0.0
    picture: Callable[[], Picture] | None = None
    fault: str | None = None
    hints: tuple[Hint, ...] = ()

    @property
    def is_right(self) -> bool:
        """Whether nothing is left to do."""
        return self.state == RIGHT

    def __str__(self) -> str:
        return f"{self.state}: {self.text}" if self.text else str(self.state)


def right(text: str = "", picture: Callable[[], Picture] | None = None) -> Verdict:
    """The answer is complete; `text` may say what was reached."""
    return Verdict(RIGHT, text, 1.0, picture)


def wrong(advice: Advice | Hint | str, share: float = 0.0, picture: Callable[[], Picture] | None = None) -> Verdict:
    """The answer has a mistake, which the advice fits. `share` of the points is given all the same."""
    if not 0 <= share < 1:
        raise ValueError(f"a wrong answer gets a share from 0 to below 1 of the points, not {share}")
    if isinstance(advice, Hint):
        advice = advice.says()
    if isinstance(advice, Advice):
        return Verdict(WRONG, advice.text, share, picture, hints=(advice.hint,))
    return Verdict(WRONG, advice, share, picture)


def not_done(why: str = "") -> Verdict:
    """The student has not begun."""
    return Verdict(NOT_DONE, why)


def parts(verdicts: Mapping[str, Verdict], picture: Callable[[], Picture] | None = None) -> Verdict:
    """The verdict on an exercise of independent parts, which count equally; each hint follows the name of its part."""
    share = sum(verdict.share for verdict in verdicts.values()) / len(verdicts)
    if all(verdict.is_right for verdict in verdicts.values()):
        return Verdict(RIGHT, " ".join(verdict.text for verdict in verdicts.values() if verdict.text), 1.0, picture)
    if all(verdict.state == NOT_DONE for verdict in verdicts.values()):
        return Verdict(NOT_DONE, next(iter(verdicts.values())).text, 0.0, picture)
    count = sum(verdict.is_right for verdict in verdicts.values())
    lines = [f"{name}: {verdict}" for name, verdict in verdicts.items() if not verdict.is_right]
    hints = tuple(hint for verdict in verdicts.values() for hint in verdict.hints)
    text = "\n".join([f"{count} of {len(verdicts)} parts are right.", *lines])
    return Verdict(WRONG, text, share, picture, hints=hints)
