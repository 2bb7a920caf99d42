"""`distlab check` and `grade` as they are typed; a class whose notebooks give the grader trouble."""

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import nbformat
import psutil
import pytest
from cyclopts import Token

from course_tools import __main__ as cli
from course_tools import lab_cells, lab_sources
from course_tools.grading import grade_class, submissions
from course_tools.grading.notebook import Cell, Material
from course_tools.sandbox import Kind
from distlab.labs import registry
from tests.course_tools.grading.submitted import LAB, put
from tests.distlab.labs.graded_sample import Handin

pytestmark = pytest.mark.slow
SECONDS = 900
NUMBER = "10"


@pytest.fixture
def course(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with the labs in it."""
    (tmp_path / "labs").symlink_to(root / "labs")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def source(root: Path) -> Path:
    return next((root / "labs").glob(f"{NUMBER}_*/lab.py"))


def hand_in(folder: Path, student: str, source: Path, **answers: str) -> None:
    made = lab_sources.solved(lab_sources.convert(source))
    for name, cell in lab_cells.answer_cells(made.cells):
        cell.source = answers.get(name, cell.source)
    put(folder, student, made, f"{source.parent.name}/lab.ipynb")


def test_a_folder_of_submissions_becomes_a_table_and_pages(
    course: Path, source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hand_in(course / "in", "ada", source)
    hand_in(course / "in", "grace", source, warm_up="import os\nos._exit(1)")
    in_time = put(course / "in", "=eve", "no notebook", f"{source.parent.name}/lab.ipynb")
    os.utime(in_time, (0, 0))
    (course / "in" / "students.txt").write_text("ada\ngrace\n=eve\nbob\n")
    (course / "build" / "grades").mkdir(parents=True)
    lab = registry.lab(NUMBER)
    assert cli.main(["grade", "in", "--only", NUMBER, "--seed", "7", "--weak", "--due", "2020-01-01"]) == 1
    *_, kept, _, look_at = capsys.readouterr().out.splitlines()
    assert kept.startswith("The grades of the run before are kept in build/grades-")
    assert look_at == f"LOOK AT =eve {lab.name}: unreadable: it is not a notebook of format 4"
    grades = course / "build" / "grades"
    with (grades / "grades.csv").open(newline="") as stream:
        found = {row["student"]: row for row in csv.DictReader(stream)}
    assert [float(found[name]["score"]) for name in ("ada", "grace", "'=eve", "bob")] == [14, 10, 0, 0]
    assert found["ada"]["note"].startswith("late by") and found["bob"]["note"] == "missing"
    assert {row["max_score"] for row in found.values()} == {f"{lab.points:g}"}
    assert sum(float(found["grace"][f"{NUMBER} {exercise.name}"]) for exercise in lab) == 10
    page = (grades / "feedback" / "grace" / f"{lab.name}.html").read_text()
    assert "10 of 14 points" in page and "exit status 1" in page
    report = json.loads((grades / "report.json").read_text())
    assert report["seed"] == 7 and "limits" in report["protections"] and len(report["look_at"]) == 1
    assert [sum(row["points"].values()) for row in report["grades"]] == [0, 14, 0, 10]
    assert len(list((course / "build").iterdir())) == 2


def test_a_deadline_is_in_local_time_and_a_date_is_the_end_of_its_day(course: Path) -> None:
    times = [grade_class._due(None, [Token(value=text)]) for text in ("2026-11-20 18:00", "2026-11-20")]
    assert times == [datetime(2026, 11, 20, 18).astimezone(), datetime(2026, 11, 20, 23, 59, 59).astimezone()]
    assert cli.main(["grade", "in", "--due", "tomorrow"]) == 2


def test_grading_that_is_interrupted_leaves_no_process_and_the_grades_before(course: Path, source: Path) -> None:
    hand_in(course / "in", "ada", source, plan="import time\ntime.sleep(1000)")
    (course / "build" / "grades").mkdir(parents=True)
    started = [sys.executable, "-m", "course_tools", "grade", "in", "--only", NUMBER, "--weak"]
    grading = subprocess.Popen(started, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert grading.stdout is not None and "limits" in grading.stdout.readline()
    watched = psutil.Process(grading.pid)
    while len(below := watched.children(recursive=True)) < 2:  # the notebook's process and its jail
        assert grading.poll() is None
    grading.send_signal(signal.SIGINT)
    output, _ = grading.communicate(timeout=SECONDS)
    assert grading.returncode == 130 and "Interrupted" in output
    assert psutil.wait_procs(below, timeout=300)[1] == []
    assert [path.name for path in (course / "build").iterdir()] == ["grades"]


def test_in_a_terminal_the_exercises_of_the_own_notebook_are_checked(
    course: Path, source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (course / "labs").unlink()  # a link to the course's own
    file = Path(shutil.copytree(source.parent, course / "labs" / source.parent.name)) / "lab.ipynb"
    made = nbformat.read(file.with_name("solution.ipynb"), as_version=4)
    cells = dict(lab_cells.answer_cells(made.cells))
    cells["plan"].metadata.clear()
    cells["warm_up"].source = "1 / 0"
    made.cells.append(nbformat.v4.new_code_cell("np.nothing"))
    nbformat.write(made, file)
    assert cli.main(["check", NUMBER]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[1] == "plan: ✔ right"
    assert said[2].startswith("warm_up: ✘ not right yet. The cell stopped in line 1 with ZeroDivisionError")
    assert any(line.startswith("Another cell, code cell ") and "AttributeError" in line for line in said)
    assert said[-2:] == [
        "10 of 14 points",
        "This was the course's own file; `make lab` makes your copy of the labs.",
    ]
    file.write_text("")
    assert cli.main(["check", NUMBER]) == 2
    assert "cannot be checked: it is not a notebook" in capsys.readouterr().err


@pytest.mark.parametrize("times", [1, 2])
def test_a_trouble_of_the_grader_is_repeated_alone_and_never_becomes_a_grade(
    times: int, handed_in: Handin, sample: Material, kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for student in ("ada", "bob", "eve"):
        put(tmp_path / "in", student, handed_in())
    tries, usual = tmp_path / "tries", grade_class.grade_notebook
    tries.mkdir()

    def killed(of: submissions.Submission, cells: Sequence[Cell], *others: object) -> None:
        if of.student == "bob":
            count = len(list(tries.iterdir()))
            (tries / f"{count}").touch()
            if count < times:
                os.kill(os.getpid(), signal.SIGKILL)
        usual(of, cells, *others)

    monkeypatch.setattr(grade_class, "grade_notebook", killed)
    found = submissions.find(tmp_path / "in", [LAB])
    ada, bob, eve = grade_class.run(found, {LAB: sample}, kind, 1, tmp_path / "out")
    assert (ada.score, eve.score, len(list(tries.iterdir()))) == (6, 6, 2)
    if times == 1:
        assert (bob.score, bob.look_at) == (6, [])
    else:
        assert bob.score is None and "LOOK AT; not graded" in bob.note
        assert bob.look_at == ["not graded: the process that graded it ended with status -9"]
