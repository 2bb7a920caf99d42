"""`distlab check`, `release` and `grade` as they are typed, on the labs as they are."""

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat
import psutil
import pytest

from course_tools import __main__ as cli
from course_tools import lab_cells, lab_sources
from course_tools.grading import run
from distlab.labs import registry
from distlab.runtime import processes

pytestmark = pytest.mark.slow
SECONDS = 900
NUMBER = "06"


@pytest.fixture
def course(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with the labs in it."""
    (tmp_path / "labs").symlink_to(root / "labs")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def source(root: Path) -> Path:
    return next((root / "labs").glob(f"{NUMBER}_*/lab.py"))


def distlab(*arguments: str) -> subprocess.CompletedProcess:
    started = [sys.executable, "-m", "course_tools", *arguments]
    return subprocess.run(started, capture_output=True, text=True, timeout=SECONDS, check=False)


def hand_in(folder: Path, student: str, source: Path, **answers: str) -> None:
    made = lab_sources.solved(lab_sources.convert(source))
    for name, cell in lab_cells.answer_cells(made.cells):
        cell.source = answers.get(name, cell.source)
    place = folder / student / source.parent.name
    place.mkdir(parents=True)
    nbformat.write(made, place / "lab.ipynb")


def test_a_class_is_graded_from_the_command_line(course: Path, source: Path) -> None:
    lab = registry.lab(NUMBER)
    last = lab.exercises[-1]
    hand_in(course / "in", "ada", source)
    hand_in(course / "in", "grace", source, **{last.name: "import os\nos._exit(1)"})
    for file in (course / "in").glob("*/*/lab.ipynb"):  # as if both were copied at one time
        os.utime(file, (1.7e9, 1.7e9))
    done = distlab("grade", "in", "--only", NUMBER, "--due", "2020-01-01", "--late-share", "0.5", "--weak")
    assert done.returncode == 1, done.stdout + done.stderr
    [to_look_at] = [line for line in done.stdout.splitlines() if line.startswith("LOOK AT")]
    assert "the late files of 'ada', 'grace' have nearly the same time" in to_look_at
    with (course / "build" / "grades" / "grades.csv").open() as stream:
        rows = {row["student"]: row for row in csv.DictReader(stream)}
    assert float(rows["ada"]["score"]) == lab.points / 2
    assert float(rows["grace"]["score"]) == (lab.points - last.points) / 2
    assert rows["ada"]["note"].startswith("late by")
    assert (course / "build" / "grades" / "feedback" / "grace" / f"{source.parent.name}.html").exists()


def processes_below(process: psutil.Process) -> Iterator[psutil.Process]:
    yield from process.children(recursive=True)


def test_grading_that_is_interrupted_leaves_no_process(course: Path, source: Path) -> None:
    first = registry.lab(NUMBER).exercises[0]
    hand_in(course / "in", "ada", source, **{first.name: "while True: pass"})
    started = [sys.executable, "-m", "course_tools", "grade", "in", "--only", NUMBER, "--weak"]
    grading = subprocess.Popen(started, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert "limits" in grading.stdout.readline()
    watched = psutil.Process(grading.pid)
    while len(below := list(processes_below(watched))) < 3:  # server, keeper, student
        assert grading.poll() is None
    grading.send_signal(signal.SIGINT)
    output, _ = grading.communicate(timeout=SECONDS)
    assert grading.returncode == 130
    assert "Interrupted" in output
    _, alive = psutil.wait_procs(below, timeout=300)
    assert alive == []


def test_a_release_and_a_check_are_made_from_the_command_line(
    course: Path, source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["release", "--only", NUMBER]) == 0
    assert (course / "build" / "release" / "students" / source.parent.name / "lab.ipynb").exists()
    assert (course / "build" / "release" / "nbgrader" / "nbgrader_config.py").exists()
    assert cli.main(["check", NUMBER]) == 0
    *_, points, last = capsys.readouterr().out.splitlines()
    assert points.endswith(f"of {registry.lab(NUMBER).points:g} points")
    assert last == "This was the course's own file; `make lab` makes your copy of the labs."


def test_a_check_says_that_an_answer_has_become_markdown(
    course: Path, source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (course / "labs").unlink()  # a link to the course's own
    file = Path(shutil.copytree(source.parent, course / "labs" / source.parent.name)) / "lab.ipynb"
    content = json.loads(file.read_text())
    answer = next(cell for cell in content["cells"] if cell["metadata"].get("nbgrader", {}).get("solution"))
    answer["cell_type"] = "markdown"
    file.write_text(json.dumps(content))
    assert cli.main(["check", NUMBER]) == 0
    name = answer["metadata"]["nbgrader"]["grade_id"]
    assert f"{name}: … its cell is no code cell any more; select it, press Esc and then Y." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["grade", "nowhere"], "/nowhere; set SUBMISSIONS=folder"),
        (["grade", "labs"], "holds a lab"),
        (["grade", "labs", "--due", "tomorrow"], "is not a time"),
        (["check", "98"], "There is no lab '98'"),
        (["grade", "labs", "--late-share", "0.5"], "A share for late work needs the deadline"),
    ],
)
def test_mistakes_in_a_command_end_in_a_sentence(
    course: Path,
    arguments: list[str],
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(processes, "end_on_signals", lambda: None)
    assert cli.main(arguments) == 2
    assert said in capsys.readouterr().err


@pytest.mark.long
@pytest.mark.parametrize("linked", [False, True])
def test_where_the_course_cannot_be_written_to_grades_go_to_the_user_or_where_a_link_leads(
    course: Path,
    source: Path,
    linked: bool,
    tmp_path_factory: pytest.TempPathFactory,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    home, drive = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("drive")
    monkeypatch.setattr(processes, "end_on_signals", lambda: None)
    monkeypatch.setattr(run, "limit_own_memory", lambda: None)
    monkeypatch.setenv("HOME", str(home))
    (course / "build").mkdir()
    if linked:
        (course / "build" / "grades").symlink_to(drive)
    monkeypatch.setattr(os, "access", lambda place, mode: Path(place) not in (Path("build"), course))
    hand_in(course / "in", "ada", source)
    assert cli.main(["grade", "in", "--only", NUMBER, "--weak"]) == 0
    said = "This folder cannot be written to: the grades go to" in capsys.readouterr().out
    assert said != linked
    assert ((drive if linked else home / "distlab-build" / "grades") / "grades.csv").exists()
