"""The commands of nbgrader that docs/teaching.md names, typed as they stand there."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from course_tools import lab_cells, lab_sources
from distlab.labs import registry

pytestmark = pytest.mark.slow

SECONDS = 900
MISTAKE = "ring_all_reduce"


def commands(root: Path) -> list[str]:
    lines = (root / "docs" / "teaching.md").read_text().splitlines()
    return [line for line in lines if line.startswith("nbgrader ")]


def test_they_grade_a_course_folder_and_a_cell_that_raises_costs_its_points_alone(root: Path, tmp_path: Path) -> None:
    (source,) = {root / "labs" / line.split()[2] / "lab.py" for line in commands(root) if line.split()[2:]}
    lab, handed_in = registry.lab(source.parent.name), source.parent
    lab_sources.release([source], tmp_path)
    course = tmp_path / lab_sources.NBGRADER
    mistaken = nbformat.read(handed_in / lab_sources.SOLUTION, as_version=4)
    next(cell for name, cell in lab_cells.answer_cells(mistaken.cells) if name == MISTAKE).source = "1 / 0"
    notebooks = {
        "solved": nbformat.read(handed_in / lab_sources.SOLUTION, as_version=4),
        "untouched": nbformat.read(handed_in / lab_sources.STUDENT, as_version=4),
        "mistaken": mistaken,
    }
    for student, notebook in notebooks.items():
        place = course / "submitted" / student / source.parent.name
        place.mkdir(parents=True)
        nbformat.write(notebook, place / lab_sources.STUDENT)

    variables = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    said = ""
    for line in commands(root):
        done = subprocess.run(
            line.split(), cwd=course, env=variables, capture_output=True, text=True, timeout=SECONDS, check=False
        )
        assert done.returncode == 0, f"{line}\n{done.stderr[-2000:]}"
        said += done.stderr
    assert "not recognized" not in said  # of a setting in nbgrader_config.py

    with (course / "grades.csv").open() as stream:
        scores = {row["student_id"]: float(row["score"]) for row in csv.DictReader(stream)}
    assert scores == {"solved": lab.points, "untouched": 0, "mistaken": lab.points - lab[MISTAKE].points}
    for student in notebooks:
        assert (course / "feedback" / student / source.parent.name / "lab.html").stat().st_size > 0
