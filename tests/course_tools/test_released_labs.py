"""Labs that are handed out are replaced all at once, whenever the run is interrupted."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from course_tools import released_labs

PARTS, LABS = ("students", "nbgrader/source"), ("02_one", "03_two", "04_three")


def hand_out(folder: Path, text: str, labs: tuple[str, ...] = LABS) -> list[Path]:
    """Hand out labs with that text; where changed ones are kept."""
    kept: list[Path] = []
    with released_labs.replacing(folder, PARTS, LABS, kept.append) as new:
        for part in PARTS:
            for lab in labs:
                (new / part / lab).mkdir()
                (new / part / lab / "lab.ipynb").write_text(text)
    return kept


def texts(folder: Path) -> dict[str, str]:
    files = [file for file in folder.rglob("*") if file.is_file() and file.name != released_labs.RECORD]
    return {str(file.relative_to(folder)): file.read_text() for file in files}


def whole(text: str, labs: tuple[str, ...] = LABS) -> dict[str, str]:
    return {f"{part}/{lab}/lab.ipynb": text for part in PARTS for lab in labs}


def test_new_labs_replace_all_of_the_course_s_and_nothing_else(tmp_path: Path) -> None:
    hand_out(tmp_path, "first")
    (tmp_path / "students" / "own.txt").write_text("mine")
    assert texts(tmp_path) == whole("first") | {"students/own.txt": "mine"}
    hand_out(tmp_path, "second", LABS[:1])
    assert texts(tmp_path) == whole("second", LABS[:1]) | {"students/own.txt": "mine"}


def test_a_run_that_fails_leaves_what_was_handed_out(tmp_path: Path) -> None:
    hand_out(tmp_path, "first")
    with pytest.raises(KeyboardInterrupt), released_labs.replacing(tmp_path, PARTS, LABS) as new:
        (new / "students" / LABS[0]).mkdir()
        raise KeyboardInterrupt
    assert texts(tmp_path) == whole("first")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [released_labs.RECORD, "nbgrader", "students"]


@pytest.mark.parametrize("name", ["lab.ipynb", "data.csv"])
@pytest.mark.parametrize("part", PARTS)
def test_a_lab_that_was_changed_since_is_kept_outside_the_parts(tmp_path: Path, part: str, name: str) -> None:
    hand_out(tmp_path, "first")
    (tmp_path / part / LABS[1] / name).write_text("mine")
    (tmp_path / part / LABS[2] / ".ipynb_checkpoints").mkdir()
    [kept] = hand_out(tmp_path, "second")
    assert kept.parent == tmp_path
    assert texts(kept) == {
        f"{part}/{LABS[1]}/{file}": text for file, text in {"lab.ipynb": "first", name: "mine"}.items()
    }
    shutil.rmtree(kept)
    assert texts(tmp_path) == whole("second")
    assert hand_out(tmp_path, "third") == []


@pytest.mark.parametrize("record", [None, "", "[1]"], ids=["missing", "empty", "foreign"])
def test_without_the_record_of_the_last_release_its_labs_are_kept(tmp_path: Path, record: str | None) -> None:
    hand_out(tmp_path, "first")
    (tmp_path / released_labs.RECORD).unlink()
    if record is not None:
        (tmp_path / released_labs.RECORD).write_text(record)
    [kept] = hand_out(tmp_path, "second")
    assert texts(kept) == whole("first")


HANDS_OUT_FOR_EVER = """
import sys
from pathlib import Path
from distlab.runtime import processes
from tests.course_tools.test_released_labs import hand_out
processes.end_on_signals()
number = 0
while True:
    number += 1
    hand_out(Path(sys.argv[1]), str(number))
    print(number, flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_at_any_moment_of_an_interrupt_all_labs_are_of_one_run(number: int, root: Path, tmp_path: Path) -> None:
    for _ in range(5):
        command = [sys.executable, "-c", HANDS_OUT_FOR_EVER, str(tmp_path)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])}
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            assert process.stdout
            process.stdout.readline()
            process.stdout.readline()
            process.send_signal(number)
            process.stdout.read()
        found = texts(tmp_path)
        assert found == whole(next(iter(found.values())))
