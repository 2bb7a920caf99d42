"""Tables of the course: in the README the notebooks and the labs, in docs/teaching.md how long everything takes."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

import nbformat

from distlab.course.html_pages import title_of

BEGIN, END = "<!-- course map: written by `make map` -->", "<!-- end of the course map -->"
BEGIN_LABS, END_LABS = "<!-- labs: written by `make map` -->", "<!-- end of the labs -->"
BEGIN_MINUTES, END_MINUTES = "<!-- minutes: written by `make map` -->", "<!-- end of the minutes -->"


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

    `notebooks` and `labs` lie beside the README. Raises ValueError with one sentence when the report, a notebook's line
    in it, the marks, or minutes are missing.
    """
    course, labs = entries(readme.parent / "notebooks"), lab_entries(readme.parent / "labs")
    if not report.is_file():
        raise ValueError(f"There is no {report}; run `make execute` for all notebooks first.")
    seconds = {row["notebook"]: row["seconds"] for row in json.loads(report.read_text())["notebooks"]}
    for entry in course:
        if entry.file.stem not in seconds:
            raise ValueError(f"{report} has no line for {entry.file.stem}; run `make execute` for all notebooks first.")
    tables = markdown(course, seconds), labs_markdown(labs), minutes_markdown(course, labs, seconds)
    places = (readme, BEGIN, END), (readme, BEGIN_LABS, END_LABS), (teaching, BEGIN_MINUTES, END_MINUTES)
    for (file, begin, end), table in zip(places, tables, strict=True):
        _replace(file, begin, end, table)
    return "\n\n".join(tables)


def entries(notebooks: Path) -> list[Entry]:
    """The notebooks of the course, in order."""
    return [_entry(file) for file in sorted(notebooks.glob("[0-9][0-9]_*.ipynb"))]


def lab_entries(labs: Path) -> list[Entry]:
    """The labs, in order of chapter."""
    return [_entry(file) for file in sorted(labs.glob("[0-9][0-9]_*/lab.ipynb"))]


def markdown(course: list[Entry], seconds: dict[str, float]) -> str:
    """The table of notebooks; `seconds` are those of a run, by name."""
    rows = ["| Notebook | What it answers | Read, minutes | Run, seconds |", "|---|---|---:|---:|"]
    for one in course:
        link = f"[{one.title}](notebooks/{one.file.name})"
        rows.append(f"| {link} | {one.goal} | {one.minutes} | {seconds[one.file.stem]:.0f} |")
    return "\n".join(rows)


def labs_markdown(labs: list[Entry]) -> str:
    """The table of labs."""
    rows = ["| Lab | What you do | Minutes |", "|---|---|---:|"]
    for one in labs:
        rows.append(f"| [{one.title}](labs/{one.file.parent.name}/{one.file.name}) | {one.goal} | {one.minutes} |")
    return "\n".join(rows)


def minutes_markdown(course: list[Entry], labs: list[Entry], seconds: dict[str, float]) -> str:
    """How long each chapter takes: minutes to read it, seconds to run it, minutes for its lab; and the sums."""
    of_labs = {one.chapter: one.minutes for one in labs}
    rows = ["| Chapter | Read, minutes | Run, seconds | Lab, minutes |", "|---|---:|---:|---:|"]
    for one in course:
        rows.append(f"| {one.title} | {one.minutes} | {seconds[one.file.stem]:.0f} | {of_labs.get(one.chapter, '–')} |")
    read, run = sum(one.minutes for one in course), sum(seconds[one.file.stem] for one in course)
    return "\n".join([*rows, f"| together | {read} | {run:.0f} | {sum(of_labs.values())} |"])


def _replace(file: Path, begin: str, end: str, table: str) -> None:
    text = file.read_text()
    if begin not in text or end not in text:
        raise ValueError(f"{file} lacks the marks {begin} and {end}.")
    before, after = text[: text.index(begin)], text[text.index(end) :]
    file.write_text(f"{before}{begin}\n{table}\n{after}")


def _entry(file: Path) -> Entry:
    notebook = nbformat.read(file, as_version=4)
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    minutes = re.search(r"\*\*Time\.\*\* (\d+) minutes", text)
    if not minutes:
        raise ValueError(f"{file} does not say how many minutes it takes.")
    return Entry(file, title_of(notebook), _goal(text), int(minutes[1]))


def _goal(text: str) -> str:
    """The first sentence after **Goal.** in the opening block."""
    found = re.search(r"\*\*Goal\.?\*\*[:.]?\s*(.+?)(?:\.\s|\.$|\n\n)", text, re.DOTALL | re.MULTILINE)
    return " ".join(found[1].split()) + "." if found else ""
