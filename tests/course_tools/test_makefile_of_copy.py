"""In a working copy `make` is the course's, in each folder where JupyterLab opens a terminal."""

import os
import shutil
import subprocess
from pathlib import Path

import nbformat
import pytest

from course_tools import makefile_of_copy, working_copy

MAKEFILE = """\
help doctor check:
\t@echo "$@ $(LAB) in $(notdir $(CURDIR))"
wrong:
\t@exit 3
"""


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """A lab and a Makefile, in a folder whose path a shell would not take as it is."""
    folder = tmp_path / "it's a course"
    for name in ("notebooks/03_topic.ipynb", "labs/03_topic/lab.ipynb", "labs/03_topic/solution.ipynb"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(nbformat.v4.new_notebook(), folder / name)
    (folder / "Makefile").write_text(MAKEFILE)
    return folder


@pytest.fixture
def copy(course: Path, tmp_path: Path) -> Path:
    working_copy.update(course, tmp_path / "work")
    return tmp_path / "work"


def make(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    variables = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    return subprocess.run(["make", *arguments], cwd=folder, env=variables, capture_output=True, text=True)


def test_make_in_the_copy_is_that_of_the_course(copy: Path) -> None:
    for folder in (".", "notebooks", "labs", "labs/03_topic", "solutions/03_topic"):
        made = make(copy / folder, "check", "LAB=06")
        assert (made.stdout, made.stderr) == ("check 06 in it's a course\n", "")
    assert make(copy, "doctor", "check").stdout.count("\n") == 2
    assert make(copy).stdout.startswith("help ")
    failed = make(copy, "wrong")
    assert failed.returncode == 2
    assert "Error 3" in failed.stderr


def test_a_target_with_the_name_of_a_folder_is_made(course: Path, copy: Path) -> None:
    (course / "Makefile").write_text(".PHONY: labs\nlabs:\n\t@echo $@\n")
    assert make(copy, "labs").stdout == "labs\n"


def test_a_course_that_is_gone_is_named(course: Path, copy: Path) -> None:
    moved = course.rename(course.with_name("moved"))
    assert make(copy, "check").stdout == f"The course is no longer in {course}: run make in its folder.\n"
    working_copy.update(moved, copy)
    assert make(copy, "check").stdout.startswith("check  in moved")


def test_a_makefile_of_the_student_stays_and_is_not_named(course: Path, copy: Path) -> None:
    own = copy / "labs/03_topic" / makefile_of_copy.NAME
    own.write_text("all:\n\techo own\n")
    moved = course.rename(course.with_name("moved"))
    assert working_copy.update(moved, copy) == []
    assert own.read_text() == "all:\n\techo own\n"
    assert all("Makefile" not in name for name in working_copy.chapter_files(moved, "03"))


def test_a_copy_that_was_copied_to_another_course_calls_that(course: Path, copy: Path, tmp_path: Path) -> None:
    """As by `cp -r old/work/* new/work`, which leaves the hidden record of the copy behind."""
    other = tmp_path / "next year"
    shutil.copytree(course, other)
    shutil.copytree(copy, other / "work", ignore=lambda folder, names: [name for name in names if name[0] == "."])
    assert working_copy.update(other, other / "work") == []
    assert make(other / "work" / "labs", "check").stdout == "check  in next year\n"
