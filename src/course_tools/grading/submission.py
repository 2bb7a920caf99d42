"""One student's work for a lab, from the file to the points."""

from dataclasses import dataclass, field
from pathlib import Path

from distlab.labs.verdict import NOT_DONE, RIGHT, Picture, Verdict

_UNTOUCHED = Verdict(NOT_DONE)


@dataclass
class Graded:
    """An exercise, not done yet: its text, the end of what its cell printed and how that failed, the verdict.

    most: points.  copied: whether it is answered in several cells, of which the last one counts.
    """

    name: str
    most: float
    text: str = ""
    copied: bool = False
    printed: str = ""
    error: str = ""
    verdict: Verdict = _UNTOUCHED
    picture: Picture | None = None

    @property
    def points(self) -> float:
        """To a hundredth of a point."""
        return round(self.most * self.verdict.share, 2)


@dataclass
class Submission:
    """A student's notebook for a lab, and what comes of it: a page of feedback and a row in grades.csv.

    file: the notebook, `None` if there is none.  notes: for the instructor, in our own words.
    look_at: on what the instructor has to decide.  failed: how other cells failed, by name.
    troubles: what went wrong with the grader or its machine: then this is no grade.
    """

    student: str
    lab: str
    file: Path | None = None
    notes: list[str] = field(default_factory=list)
    look_at: list[str] = field(default_factory=list)
    exercises: list[Graded] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    troubles: list[str] = field(default_factory=list)

    @property
    def note(self) -> str:
        """All that the instructor should know."""
        cells = [f"the cell of {each.name}" for each in self.exercises if each.error and each.verdict.state != RIGHT]
        failed = [f"{name} failed" for name in (*self.failed, *cells)]
        return "; ".join([*self.notes, *failed, *self.look_at])

    @property
    def points(self) -> dict[str, float]:
        """Those of each exercise, by its name; none where there is no grade."""
        return {} if self.troubles else {each.name: each.points for each in self.exercises}

    @property
    def score(self) -> float | None:
        """The sum of the points, None if there is no grade."""
        return None if self.troubles else round(sum(self.points.values()), 2)

    @property
    def max_score(self) -> float:
        """What all exercises are worth together."""
        return sum(each.most for each in self.exercises)


def printable(text: str) -> str:
    r"""The text with escapes such as \x1b for what cannot be printed, so that it changes neither terminal nor file."""
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)
