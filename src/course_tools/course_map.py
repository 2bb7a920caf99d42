"""What is written into README and docs by a program: `distlab map` brings all of it up to date.

In the README the chapters with their labs, in docs/teaching.md how long everything takes and schedules, in
docs/sources.md the published numbers, and docs/commands.md.
"""

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import nbformat

from course_tools import __main__ as cli
from course_tools.chapters import chapter_notebooks, number_of, part_of
from course_tools.html_pages import title_of
from distlab.runtime import tables
from distlab.runtime.errors import PlainError

README, DOCS = Path("README.md"), Path("docs")
TEACHING, SOURCES, COMMANDS = DOCS / "teaching.md", DOCS / "sources.md", DOCS / "commands.md"
REPORT = Path("build/report.json")


SCHEDULES: dict[str, list[dict[str, Any]]] = tomllib.loads(Path(__file__).with_name("schedules.toml").read_text())
"""By title, the meetings of a class; what the file says of each is in its own words."""


class Entry(NamedTuple):
    """A notebook or a lab: its file, its title, its goal in a sentence, and the minutes that it names."""

    file: Path
    title: str
    goal: str
    minutes: int

    @property
    def chapter(self) -> str:
        """The number of the chapter."""
        return next(number_of(name) for name in (self.file.stem, self.file.parent.name) if name[:2].isdigit())


def write() -> None:
    """Write the tables of README.md, docs/teaching.md and docs/sources.md, and docs/commands.md; print the tables.

    Raises PlainError where there is no report of a complete run of all notebooks with the default parameters.
    """
    from course_tools import source_tables  # here, since it imports the costs

    if not REPORT.is_file():
        raise PlainError(f"There is no {REPORT}; run `make execute` for all notebooks first.")
    report = json.loads(REPORT.read_text())
    seconds = {row["notebook"]: row["seconds"] for row in report["notebooks"] if row["status"] == "ok"}
    course, labs = entries(Path("notebooks")), lab_entries(Path("labs"))
    if report["parameters"] or any(entry.file.stem not in seconds for entry in course):
        raise PlainError(f"{REPORT} is of another run; run `make execute` for all notebooks without options first.")
    texts = [
        (README, "course map", chapters_and_labs(course, labs)),
        (TEACHING, "minutes", minutes_table(course, labs, seconds)),
        (TEACHING, "schedules", schedules(minutes_of(course), minutes_of(labs))),
        (SOURCES, "published numbers", source_tables.published_numbers()),
    ]
    for file, name, table in texts:
        replace_between(file, name, table)
        print(table)
    COMMANDS.write_text(commands())


def commands() -> str:
    """The page with the commands of `distlab`; their options, without what each example shows, but for maintainers'."""
    _, first_group, by_group = cli.app.generate_docs().partition(f"**{next(iter(cli.COMMANDS))}**")
    maintain = "|".join(cli.COMMANDS["Maintain"])
    shortened = {
        r"(?s)^```console\n.*?^```\n\n": "",
        r"^\*\*(?:Arguments|Parameters)\*\*:\n\n": "",
        r"^Example: `distlab [\w-]+`\n\n?": "",
        rf"(?s)^## distlab (?:{maintain})\n.*?(?=^## )": "",
        rf"\[(`(?:{maintain})`)\]\(\S+\)": r"\1",
        r"^(\* \[.*?\]\(.*?\)): .*$": r"\1",  # The sentence is at the command.
    }
    text = first_group + by_group
    for pattern, replacement in shortened.items():
        text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
    opening = "Written by `make map` from `distlab --help`. `distlab NAME --help` says the same, of every command."
    return f"# The command distlab\n\n{opening}\n\n{text}"


def minutes_of(entries: list[Entry]) -> dict[str, int]:
    """Minutes by chapter."""
    return {entry.chapter: entry.minutes for entry in entries}


def entries(notebooks: Path) -> list[Entry]:
    """The notebooks of the course, in order."""
    return [_entry(file) for file in chapter_notebooks(notebooks)]


def lab_entries(labs: Path) -> list[Entry]:
    """The labs, in order of chapter."""
    return [_entry(file) for file in sorted(labs.glob("[0-9][0-9]_*/lab.ipynb"))]


def _entry(file: Path) -> Entry:
    notebook = nbformat.read(file, as_version=4)
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    minutes = re.search(r"\*\*Time\.\*\* (\d+) minutes", text)
    # The first sentence after it in the opening block.
    goal = re.search(r"\*\*Goal\.?\*\*[:.]?\s*(.+?)(?:\.\s|\.$|\n\n)", text, re.DOTALL | re.MULTILINE)
    if not minutes or not goal:
        raise PlainError(f"{file} does not say its goal, and how many minutes it takes.")
    return Entry(file, title_of(notebook), " ".join(goal[1].split()) + ".", int(minutes[1]))


def chapters_and_labs(course: list[Entry], labs: list[Entry]) -> str:
    """A heading and a table for each part of the course: chapters with their labs; a lab may have no chapter."""
    rows: dict[str, list[tuple[object, ...]]] = {}
    exercises = {lab.chapter: f"{_link(lab)}, {lab.minutes} minutes" for lab in labs}
    for number, entry in sorted({entry.chapter: entry for entry in [*labs, *course]}.items()):
        lab = "" if entry in labs else exercises.get(number, "")
        rows.setdefault(part_of(number), []).append((_link(entry), entry.goal, entry.minutes, lab))
    header = ["Chapter", "What you learn to do", "Minutes", "Lab"]
    return "\n\n".join(f"### {part}\n\n{tables.markdown(header, listed, right=(2,))}" for part, listed in rows.items())


def _link(entry: Entry) -> str:
    return f"[{entry.title}]({entry.file.as_posix()})"


def minutes_table(course: list[Entry], labs: list[Entry], seconds: dict[str, float]) -> str:
    """How long each chapter takes: minutes to read it, seconds to run it, minutes for its lab; the sums.

    A lab may have no chapter.
    """
    of_lab, chapters = minutes_of(labs), minutes_of(course)
    rows: list[tuple[object, ...]] = [
        (entry.title, entry.minutes, f"{seconds[entry.file.stem]:.0f}", of_lab.get(entry.chapter, "–"))
        for entry in course
    ]
    rows += [(f"{name} (a lab alone)", "–", "–", minutes) for name, minutes in of_lab.items() if name not in chapters]
    run = sum(seconds[entry.file.stem] for entry in course)
    rows.append(("together", sum(chapters.values()), f"{run:.0f}", sum(of_lab.values())))
    return tables.markdown(["Chapter", "Read, minutes", "Run, seconds", "Lab, minutes"], rows, right=(1, 2, 3))


def schedules(read: Mapping[str, int], labs: Mapping[str, int]) -> str:
    """All schedules as headings and tables; `read` and `labs` have the minutes of each chapter and lab."""
    header = ["When", "Chapters", "Labs", "Minutes", "At home", "If time is short, leave out"]
    texts = []
    for title, sessions in SCHEDULES.items():
        rows = []
        for each in sessions:
            lists = (", ".join(each.get(kind, ())) or "–" for kind in ("chapters", "labs"))
            more = (each.get(kind, "–") for kind in ("at_home", "shorten"))
            rows.append((each["when"], *lists, session_minutes(each, read, labs), *more))
        texts.append(f"### {title}\n\n{tables.markdown(header, rows, right=(3,))}")
    return "\n\n".join(texts)


def session_minutes(session: Mapping[str, Any], read: Mapping[str, int], labs: Mapping[str, int]) -> int:
    """What the chapters and labs of a meeting take together, by the minutes of each."""
    return sum(read[chapter] for chapter in session["chapters"]) + sum(labs[lab] for lab in session.get("labs", ()))


def replace_between(file: Path, name: str, table: str) -> None:
    """Write the table between the marks `<!-- NAME: … -->` and `<!-- end of the NAME -->` of a text file.

    Raises PlainError when it lacks them.
    """
    marks = re.compile(rf"(<!-- {name}: .*? -->\n).*?\n(<!-- end of the {name} -->)", re.DOTALL)
    text, count = marks.subn(lambda found: f"{found[1]}{table}\n{found[2]}", file.read_text())
    if not count:
        raise PlainError(f"{file} lacks the marks of the {name}.")
    file.write_text(text)
