"""What came of grading: grades.csv, and a page of feedback for each student and lab.

Everything that came from the student is shown as text: Jinja2 escapes it, and nothing on the page can run.
"""

import base64
import csv
import re
from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment, StrictUndefined

from course_tools.grading.submissions import Submission, printable
from distlab.labs.verdict import NOT_DONE, RIGHT

COLUMNS = ("student", "lab", "score", "max_score", "note")
_SIGNS = {RIGHT: "✔ right", NOT_DONE: "… not done"}
_ENVIRONMENT = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


def write_table(grades: Sequence[Submission], file: Path) -> None:
    """Write grades.csv, with a column for each exercise; a text that a spreadsheet takes for a formula gets a '."""
    with file.open("w", newline="", encoding="utf-8") as stream:
        exercises = dict.fromkeys(f"{grade.lab[:2]} {name}" for grade in grades for name in grade.points)
        writer = csv.DictWriter(stream, [*COLUMNS, *exercises])
        writer.writeheader()
        for grade in grades:
            points = {f"{grade.lab[:2]} {name}": f"{points:g}" for name, points in grade.points.items()}
            texts = {name: _cell(getattr(grade, name)) for name in ("student", "lab", "note")}
            score = "" if grade.score is None else f"{grade.score:g}"
            writer.writerow({**texts, "score": score, "max_score": f"{grade.max_score:g}", **points})


def write_page(grade: Submission, protections: str, folder: Path) -> None:
    """Write `folder`/STUDENT/NN_topic.html; `protections` says in a sentence what students' code cannot reach."""
    file = folder / grade.student / f"{grade.lab}.html"
    file.parent.mkdir(parents=True, exist_ok=True)
    template = _ENVIRONMENT.from_string(Path(__file__).with_name("feedback.html").read_text(encoding="utf-8"))
    page = template.render(grade=grade, protections=protections, signs=_SIGNS, base64=_base64)
    file.write_text(page, encoding="utf-8", errors="backslashreplace")


def _cell(value: str) -> str:
    """A text on one line; also where a spreadsheet takes semicolons or other signs for the ends of cells."""
    return re.sub(r"(^|[;,|]\s*)(?=[=+\-@])", r"\1'", printable(" ".join(value.split())))


def _base64(text: str) -> str:  # a picture is an image, so that nothing in it can run
    return base64.b64encode(text.encode(errors="backslashreplace")).decode()
