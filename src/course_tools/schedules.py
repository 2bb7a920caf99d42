"""Schedules for half a day, two days and a semester: which chapters and labs, and how many minutes they take."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from distlab.runtime import tables


@dataclass(frozen=True)
class Session:
    """One meeting of a class: chapters read and run together, labs done there, labs and chapters for home.

    shorten: what to leave out where time is short.
    """

    when: str
    chapters: tuple[str, ...]
    labs: tuple[str, ...] = ()
    at_home: str = "–"
    shorten: str = "–"

    def minutes(self, read: Mapping[str, int], labs: Mapping[str, int]) -> int:
        """What its chapters and labs take together, by the minutes of each."""
        return sum(read[chapter] for chapter in self.chapters) + sum(labs[lab] for lab in self.labs)


HALF_DAY = (
    Session("first hour", ("01",), shorten="01: model parallelism, asynchronous updates", at_home="before: 00"),
    Session("second hour", ("03",), ("03",), shorten="03: sections 4 to 6"),
    Session("third hour", ("06",), shorten="06: sections 5, 7 and 9", at_home="after: lab 06"),
    Session("fourth hour", ("09",), shorten="09: sections 7 and 8", at_home="after: lab 09"),
)
TWO_DAYS = (
    Session("day 1, morning", ("01", "02", "03"), ("02", "03"), at_home="before: 00", shorten="02: the input pipeline"),
    Session("day 1, afternoon", ("04", "06"), ("04", "06"), at_home="05", shorten="04: sections 8 and 9"),
    Session("day 2, morning", ("07", "09"), ("07", "09"), shorten="07: section 8 and the appendix"),
    Session("day 2, afternoon", ("10", "11", "13"), ("10",), at_home="labs 11 and 13", shorten="10: sections 6 to 8"),
)
SEMESTER = (
    Session("week 1", ("00", "01", "02"), ("02",)),
    Session("week 2", ("03", "04"), ("03", "04")),
    Session("week 3", ("05",), ("05",), shorten="lab 05: exercise 4"),
    Session("week 4", ("06",), ("06",)),
    Session("week 5", ("07",), ("07",)),
    Session("week 6", ("08",), ("08",), shorten="08: part 2, Keras 3"),
    Session("week 7", ("09",), ("09",)),
    Session("week 8", ("10",), ("10",)),
    Session("week 9", ("11",), ("11",)),
    Session("week 10", ("12",), ("12",), shorten="12: section 4"),
    Session("week 11", ("13",), ("13",), shorten="lab 13: what it marks as optional"),
    Session("week 12", ("14", "15"), ("15",), at_home="lab 14; lab 16, the project of the term"),
)
SCHEDULES = {"Half a day": HALF_DAY, "Two days": TWO_DAYS, "A semester of twelve weeks": SEMESTER}


def markdown(read: Mapping[str, int], labs: Mapping[str, int]) -> str:
    """All schedules as headings and tables; `read` and `labs` have the minutes of each chapter and lab."""
    return "\n\n".join(f"### {title}\n\n{_table(sessions, read, labs)}" for title, sessions in SCHEDULES.items())


def _table(sessions: Iterable[Session], read: Mapping[str, int], labs: Mapping[str, int]) -> str:
    rows = [
        (
            session.when,
            ", ".join(session.chapters),
            ", ".join(session.labs) or "–",
            session.minutes(read, labs),
            session.at_home,
            session.shorten,
        )
        for session in sessions
    ]
    return tables.markdown(
        ["When", "Chapters", "Labs", "Minutes", "At home", "If time is short, leave out"], rows, right=(3,)
    )
