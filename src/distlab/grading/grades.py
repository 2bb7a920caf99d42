"""grades.csv: a row for each student and lab."""

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

COLUMNS = ("student", "lab", "score", "max_score", "note")


class Grade(NamedTuple):
    """A row."""

    student: str
    lab: str
    score: float
    max_score: float
    note: str


def write(grades: Iterable[Grade], file: Path) -> Path:
    """Write the table, in order; a text that a spreadsheet would take for a formula gets an apostrophe in front."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(COLUMNS)
        for grade in grades:
            numbers = (f"{grade.score:g}", f"{grade.max_score:g}")
            writer.writerow([_text(grade.student), _text(grade.lab), *numbers, _text(grade.note)])
    return file


def _text(value: str) -> str:
    line = " ".join(value.split())
    return f"'{line}" if line.startswith(("=", "+", "-", "@")) else line
