"""What came of grading: grades.csv, and a page of feedback for each student and lab.

Everything that came from the student is shown as text: Jinja2 escapes it, and nothing on the page can run.
"""

import base64
import csv
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment, StrictUndefined

from course_tools.grading.grade import Report
from course_tools.grading.submissions import printable
from distlab.labs.verdict import NOT_DONE, RIGHT, State

COLUMNS = ("student", "lab", "score", "max_score", "note")
_KINDS = {RIGHT: ("right", "✔ right"), NOT_DONE: ("open", "… not done")}
_ENVIRONMENT = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


class Grade(NamedTuple):
    """A row of grades.csv; `score` is None if there is no grade, and `note` says why."""

    student: str
    lab: str
    score: float | None
    max_score: float
    note: str


def write_table(grades: Iterable[Grade], file: Path) -> None:
    """Write grades.csv, in order, whole or not at all; a text that is a formula to a spreadsheet gets an apostrophe."""
    new = file.with_name(f"{file.name}.new")
    with new.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(COLUMNS)
        for grade in grades:
            numbers = ("" if grade.score is None else f"{grade.score:g}", f"{grade.max_score:g}")
            writer.writerow([_cell(grade.student), _cell(grade.lab), *numbers, _cell(grade.note)])
    new.rename(file)


def write_page(grade: Grade, report: Report, protections: str, folder: Path) -> None:
    """Write `folder`/STUDENT/NN_topic.html; `protections` says in a sentence what students' code cannot reach."""
    file = folder / grade.student / f"{grade.lab}.html"
    file.parent.mkdir(parents=True, exist_ok=True)
    text = Path(__file__).with_name("feedback.html").read_text(encoding="utf-8")
    template = _ENVIRONMENT.from_string(text, {"kind": _kind, "sign": _sign, "base64": _base64})
    page = template.render(
        grade=grade, exercises=report.exercises, failed=list(report.failed.items()), protections=protections
    )
    file.write_text(page, encoding="utf-8", errors="backslashreplace")


def _cell(value: str) -> str:
    """A text on one line; also where a spreadsheet takes semicolons or other signs for the ends of cells."""
    return re.sub(r"(^|[;,|]\s*)(?=[=+\-@])", r"\1'", printable(" ".join(value.split())))


def _kind(state: State) -> str:
    return _KINDS.get(state, ("wrong", ""))[0]


def _sign(state: State) -> str:
    return _KINDS.get(state, ("", "✘ not right"))[1]


def _base64(text: str) -> str:  # a picture is an image, so that nothing in it can run
    return base64.b64encode(text.encode(errors="backslashreplace")).decode()
