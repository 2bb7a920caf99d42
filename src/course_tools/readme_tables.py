"""Tables of the course: in the README the notebooks and the labs, in docs/teaching.md how long everything takes."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

import nbformat

from course_tools import schedules
from course_tools.html_pages import title_of
from course_tools.site.chapters import chapter_notebooks
from distlab.runtime import tables
from distlab.runtime.errors import PlainError

BEGIN, END = "<!-- course map: written by `make map` -->", "<!-- end of the course map -->"
BEGIN_LABS, END_LABS = "<!-- labs: written by `make map` -->", "<!-- end of the labs -->"
BEGIN_MINUTES, END_MINUTES = "<!-- minutes: written by `make map` -->", "<!-- end of the minutes -->"
BEGIN_SCHEDULES, END_SCHEDULES = "<!-- schedules: written by `make map` -->", "<!-- end of the schedules -->"


class CannotWriteTables(PlainError, ValueError):
    """Something that the tables need is missing; the message says what."""


@dataclass(frozen=True)
class Entry:
    """A notebook or a lab: its file, its title, its goal in a sentence, and the minutes that it names."""

    file: Path
    title: str
    goal: str
    minutes: int

    @property
    def chapter(self) -> str:
        """The two digits of the chapter."""
        return next(name[:2] for name in (self.file.stem, self.file.parent.name) if name[:2].isdigit())


def write(readme: Path, teaching: Path, report: Path) -> str:
    """Replace the tables between the marks of README and docs/teaching.md; return the new tables.

    `notebooks` and `labs` are next to the README. Raises CannotWriteTables when the report, a notebook's line
    in it, the marks, or minutes are missing.
    """
    course, labs = entries(readme.parent / "notebooks"), lab_entries(readme.parent / "labs")
    if not report.is_file():
        raise CannotWriteTables(f"There is no {report}; run `make execute` for all notebooks first.")
    try:
        content = json.loads(report.read_text())
        seconds = {row["notebook"]: row["seconds"] for row in content["notebooks"] if row["status"] == "ok"}
        other_values = ", ".join(f"{name.upper()}={value}" for name, value in content["parameters"].items())
    except (ValueError, KeyError, TypeError):
        raise CannotWriteTables(f"{report} is damaged; run `make execute` for all notebooks again.") from None
    if other_values:
        raise CannotWriteTables(f"{report} is of a run with {other_values}; run `make execute` without options first.")
    for entry in course:
        if entry.file.stem not in seconds:
            raise CannotWriteTables(
                f"{report} has no complete run of {entry.file.stem}; run `make execute` for all notebooks first."
            )
    texts = {
        (readme, BEGIN, END): notebooks_table(course, seconds),
        (readme, BEGIN_LABS, END_LABS): labs_table(labs),
        (teaching, BEGIN_MINUTES, END_MINUTES): minutes_table(course, labs, seconds),
        (teaching, BEGIN_SCHEDULES, END_SCHEDULES): schedules.markdown(minutes_of(course), minutes_of(labs)),
    }
    for marks in texts:
        require_marks(*marks)
    for (file, begin, end), table in texts.items():
        replace_between(file, begin, end, table)
    return "\n\n".join(texts.values())


def minutes_of(entries: list[Entry]) -> dict[str, int]:
    """Minutes by chapter."""
    return {entry.chapter: entry.minutes for entry in entries}


def entries(notebooks: Path) -> list[Entry]:
    """The notebooks of the course, in order."""
    return [_entry(file) for file in chapter_notebooks(notebooks)]


def lab_entries(labs: Path) -> list[Entry]:
    """The labs, in order of chapter."""
    return [_entry(file) for file in sorted(labs.glob("[0-9][0-9]_*/lab.ipynb"))]


def notebooks_table(course: list[Entry], seconds: dict[str, float]) -> str:
    """The table of notebooks; `seconds` are those of a run, by name."""
    header = ["Notebook", "What it answers", "Read, minutes", "Run, seconds"]
    rows = [
        (f"[{entry.title}](notebooks/{entry.file.name})", entry.goal, entry.minutes, f"{seconds[entry.file.stem]:.0f}")
        for entry in course
    ]
    return tables.markdown(header, rows, right=(2, 3))


def labs_table(labs: list[Entry]) -> str:
    """The table of labs."""
    rows = [
        (f"[{entry.title}](labs/{entry.file.parent.name}/{entry.file.name})", entry.goal, entry.minutes)
        for entry in labs
    ]
    return tables.markdown(["Lab", "What you do", "Minutes"], rows, right=(2,))


def minutes_table(course: list[Entry], labs: list[Entry], seconds: dict[str, float]) -> str:
    """How long each chapter takes: minutes to read it, seconds to run it, minutes for its lab; the sums.

    A lab may have no chapter.
    """
    lab_minutes = minutes_of(labs)
    rows: list[tuple[object, ...]] = [
        (entry.title, entry.minutes, f"{seconds[entry.file.stem]:.0f}", lab_minutes.get(entry.chapter, "–"))
        for entry in course
    ]
    chapters = {entry.chapter for entry in course}
    rows += [
        (f"{entry.chapter} (a lab alone)", "–", "–", entry.minutes) for entry in labs if entry.chapter not in chapters
    ]
    read, run = sum(entry.minutes for entry in course), sum(seconds[entry.file.stem] for entry in course)
    rows.append(("together", read, f"{run:.0f}", sum(lab_minutes.values())))
    return tables.markdown(["Chapter", "Read, minutes", "Run, seconds", "Lab, minutes"], rows, right=(1, 2, 3))


def require_marks(file: Path, begin: str, end: str) -> None:
    """Raises CannotWriteTables, with the marks between which a table stands, when the text file lacks one of them."""
    text = file.read_text()
    if begin not in text or end not in text:
        raise CannotWriteTables(f"{file} lacks one of the marks {begin} and {end}.")


def replace_between(file: Path, begin: str, end: str, table: str) -> None:
    """Write the table between two marks of a text file. Raises CannotWriteTables when it lacks one of them."""
    require_marks(file, begin, end)
    text = file.read_text()
    before, after = text[: text.index(begin)], text[text.index(end) :]
    file.write_text(f"{before}{begin}\n{table}\n{after}")


def _entry(file: Path) -> Entry:
    notebook = nbformat.read(file, as_version=4)
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    minutes = re.search(r"\*\*Time\.\*\* (\d+) minutes", text)
    if not minutes:
        raise CannotWriteTables(f"{file} does not say how many minutes it takes.")
    return Entry(file, title_of(notebook), _goal(text), int(minutes[1]))


def _goal(text: str) -> str:
    """The first sentence after **Goal.** in the opening block."""
    goal = re.search(r"\*\*Goal\.?\*\*[:.]?\s*(.+?)(?:\.\s|\.$|\n\n)", text, re.DOTALL | re.MULTILINE)
    return " ".join(goal[1].split()) + "." if goal else ""
