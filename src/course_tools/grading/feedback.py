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

from course_tools.grading.grade import Graded, Report
from course_tools.grading.submissions import printable
from distlab.labs.verdict import NOT_DONE, RIGHT

COLUMNS = ("student", "lab", "score", "max_score", "note")

_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<title>{{ grade.student }}: lab {{ grade.lab }}</title>
<style>
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
h2 { margin-top: 2rem; border-top: 1px solid #ddd; padding-top: 1rem; }
pre { background: #f6f6f6; padding: .75rem; overflow-x: auto; white-space: pre-wrap; overflow-wrap: anywhere; }
p.verdict { white-space: pre-wrap; padding: .5rem .75rem; border-left: .3rem solid #767676; }
p.right { border-color: #009e73; }
p.wrong { border-color: #d55e00; }
table { border-collapse: collapse; }
th, td { text-align: left; padding: .25rem .75rem; border-bottom: 1px solid #ddd; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
img { max-width: 100%; }
</style></head><body>
<h1>{{ grade.student }}: lab {{ grade.lab }}</h1>
<p><strong>
{%- if grade.score is none %}No grade yet.{% else %}{{ "%g" % grade.score }} of {{ "%g" % grade.max_score }} points.
{%- endif %}</strong>
{%- if grade.note %} {{ grade.note }}{% endif %}</p>
{% if exercises %}
<table><tr><th>exercise</th><th></th><th>points</th><th>of</th></tr>
{% for graded in exercises %}
<tr><td>{{ graded.exercise.name }}</td><td>{{ sign(graded) }}</td>
<td class="number">{{ "%g" % graded.points }}</td><td class="number">{{ "%g" % graded.exercise.points }}</td></tr>
{% endfor %}
</table>
{% endif %}
{% for graded in exercises %}
<h2>{{ graded.exercise.name }}: {{ "%g" % graded.points }} of {{ "%g" % graded.exercise.points }}</h2>
<p class="verdict {{ kind(graded) }}">{{ sign(graded) }}
{%- if graded.verdict.text %}. {{ graded.verdict.text }}{% endif %}</p>
{% if graded.error and graded.error not in graded.verdict.text %}
<p>{{ graded.error }}</p>
{% endif %}
{% if graded.picture %}
<img alt="{{ graded.picture.description }}" src="data:image/svg+xml;base64,{{ base64(graded.picture.svg) }}">
{% endif %}
{% if graded.text and kind(graded) != "open" %}
<details><summary>The answer</summary><pre>{{ graded.text }}</pre></details>
{% endif %}
{% if graded.printed.strip() %}
<details><summary>The end of its output</summary><pre>{{ graded.printed }}</pre></details>
{% endif %}
{% endfor %}
<p><small>{{ protections }}</small></p>
</body></html>
"""


class Grade(NamedTuple):
    """A row of grades.csv; `score` is None if there is no grade, and `note` says why."""

    student: str
    lab: str
    score: float | None
    max_score: float
    note: str


def write_table(grades: Iterable[Grade], file: Path) -> Path:
    """Write grades.csv, in order, whole or not at all; a text that is a formula to a spreadsheet gets an apostrophe."""
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_name(f"{file.name}.new")
    with new.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(COLUMNS)
        for grade in grades:
            numbers = ("" if grade.score is None else f"{grade.score:g}", f"{grade.max_score:g}")
            writer.writerow([_cell(grade.student), _cell(grade.lab), *numbers, _cell(grade.note)])
    return new.rename(file)


def write_page(grade: Grade, report: Report, protections: str, folder: Path) -> Path:
    """Write `folder`/STUDENT/NN_topic.html; `protections` says in a sentence what students' code cannot reach."""
    file = folder / grade.student / f"{grade.lab}.html"
    file.parent.mkdir(parents=True, exist_ok=True)
    page = _TEMPLATE.render(grade=grade, exercises=report.exercises, protections=protections)
    file.write_text(page, encoding="utf-8", errors="backslashreplace")
    return file


def _cell(value: str) -> str:
    """A text on one line; also where a spreadsheet takes semicolons or other signs for the ends of cells."""
    line = printable(" ".join(value.split()))
    return re.sub(r"(^|[;,|]\s*)(?=[=+\-@])", r"\1'", line)


def _kind(graded: Graded) -> str:
    return {RIGHT: "right", NOT_DONE: "open"}.get(graded.verdict.state, "wrong")


def _sign(graded: Graded) -> str:
    return {RIGHT: "✔ right", NOT_DONE: "… not done"}.get(graded.verdict.state, "✘ not right")


def _base64(text: str) -> str:
    return base64.b64encode(text.encode(errors="backslashreplace")).decode()


# A picture is an image, so that nothing in it can run.
_TEMPLATE = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True).from_string(
    _PAGE, {"sign": _sign, "kind": _kind, "base64": _base64}
)
