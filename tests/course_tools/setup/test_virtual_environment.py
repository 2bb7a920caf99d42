"""When the environment counts as whole, and what is said when something else has its place."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from course_tools.setup.virtual_environment import (
    Environment,
    EnvironmentNotMade,
    check_may_read,
    check_may_write,
    check_place,
    check_project,
    requirement_of_uv,
)
from distlab.runtime import processes
from tests import small_disks
from tests.course_tools.setup.small_environment import LOCK

pytestmark = pytest.mark.fault


def test_a_whole_environment_is_left_alone(environment: Environment) -> None:
    check_place(environment)
    check_may_write(environment)
    assert environment.reason_to_build() is None
    assert not environment.needs_update()


def test_there_is_none_yet(environment: Environment) -> None:
    shutil.rmtree(environment.folder)
    assert "Making .venv" in environment.reason_to_build()
    environment.folder.mkdir()
    assert "Making .venv" in environment.reason_to_build()


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"course": 1}'])
def test_a_record_that_was_cut_does_not_count(environment: Environment, content: str) -> None:
    environment.ready.write_text(content)
    assert "No set-up of .venv has finished" in environment.reason_to_build()


def test_a_library_that_was_cut_and_a_program_without_its_right_to_run_count_as_damaged(
    environment: Environment,
) -> None:
    metadata = environment.packages()["numpy-2.0.0.dist-info"]
    library, program = metadata.parent / "core.so", environment.folder / "bin" / "f2py"
    library.write_bytes(bytes(8))
    program.touch(mode=0o755)
    with (metadata / "RECORD").open("a") as record:
        record.write("core.so,sha256=1,8\n../../../bin/f2py,sha256=1,0\n")
    assert environment.reason_to_build() is None
    library.write_bytes(bytes(4))
    assert "missing or damaged (1, such as core.so)" in environment.reason_to_build()
    library.write_bytes(bytes(8))
    program.chmod(0o644)
    assert "missing or damaged (1, such as ../../../bin/f2py)" in environment.reason_to_build()


def test_a_package_in_another_version_is_named_with_both(environment: Environment) -> None:
    """As after `%pip install "numpy<2"` in a notebook."""
    metadata = environment.packages()["numpy-2.0.0.dist-info"]
    metadata.rename(metadata.with_name("numpy-1.26.4.dist-info"))
    sentence = "numpy 1.26.4 is installed, and the course has 2.0.0: making .venv again."
    assert environment.reason_to_build() == sentence


def test_unfinished_work_is_begun_again(environment: Environment) -> None:
    environment.unfinished.touch()
    assert "No set-up of .venv has finished" in environment.reason_to_build()


@pytest.mark.parametrize(
    "lost", ["numpy.py", "numpy-2.0.0.dist-info", "numpy-2.0.0.dist-info/RECORD"], ids=["a file", "metadata", "RECORD"]
)
def test_files_that_are_lost_are_noticed_and_named(environment: Environment, lost: str) -> None:
    path = environment.folder / "lib" / "python3.11" / "site-packages" / lost
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert (
        f"such as {lost.replace('numpy-2.0.0.dist-info/', 'numpy-2.0.0.dist-info')[:5]}"
        in environment.reason_to_build()
    )


def test_a_package_that_the_user_added_may_go_again(environment: Environment) -> None:
    """It is not the course's; a RECORD that names lost files does not count either."""
    added = environment.folder / "lib" / "python3.11" / "site-packages" / "added-1.dist-info"
    added.mkdir()
    (added / "RECORD").write_text("lost.py,,\n")
    assert environment.reason_to_build() is None


def test_a_course_that_was_moved_gets_a_new_environment(environment: Environment, tmp_path: Path) -> None:
    moved = tmp_path.with_name("moved")
    tmp_path.rename(moved)
    reason = Environment(moved).reason_to_build()
    assert f"The course was in {tmp_path}" in reason
    moved.rename(tmp_path)


def test_a_python_that_does_not_start_is_noticed(environment: Environment) -> None:
    environment.python.unlink()
    assert "does not start" in environment.reason_to_build()
    environment.python.symlink_to("/nowhere/python3")
    assert "does not start" in environment.reason_to_build()


@pytest.mark.parametrize("file", ["requirements.lock", "pyproject.toml"])
def test_a_changed_source_asks_for_an_update(environment: Environment, file: str) -> None:
    with (environment.course / file).open("a") as stream:
        stream.write("\n")
    assert environment.reason_to_build() is None
    assert environment.needs_update()


def test_a_missing_lock_is_named_with_the_command_that_restores_it(environment: Environment) -> None:
    (environment.course / "requirements.lock").unlink()
    with pytest.raises(
        EnvironmentNotMade, match=r"^requirements\.lock cannot be read .*git checkout requirements\.lock"
    ):
        environment.needs_update()


def test_the_entry_of_uv_is_found(environment: Environment) -> None:
    assert requirement_of_uv(environment.course) == "uv==0.13.8 \\\n    --hash=sha256:22\n"


def test_the_courses_own_lock_is_accepted(root: Path) -> None:
    assert requirement_of_uv(root).startswith("uv==")


@pytest.mark.parametrize(
    "content",
    [
        "",
        "numpy",
        LOCK[:30],
        LOCK[: LOCK.index("uv==")],
        LOCK[: LOCK.index("    --hash=sha256:33")],
        "\0" * 100,
        "<html>",
    ],
    ids=["empty", "a word", "within an entry", "before uv", "before the last digest", "zeros", "a page"],
)
def test_a_damaged_lock_is_said_to_be_damaged(environment: Environment, content: str) -> None:
    (environment.course / "requirements.lock").write_text(content)
    with pytest.raises(EnvironmentNotMade, match=r"^requirements\.lock is damaged; `git checkout"):
        requirement_of_uv(environment.course)


@pytest.mark.parametrize("content", ["<<<<<<< HEAD\n[project]\n", "\0", None])
def test_a_damaged_project_file_is_said_to_be_damaged(environment: Environment, content: str | None) -> None:
    check_project(environment.course)
    file = environment.course / "pyproject.toml"
    file.unlink() if content is None else file.write_text(content)
    with pytest.raises(EnvironmentNotMade, match=r"^pyproject\.toml is damaged; `git checkout"):
        check_project(environment.course)


def test_a_folder_in_the_place_of_the_lock_is_named(environment: Environment) -> None:
    (environment.course / ".venv.lock").mkdir()
    with pytest.raises(EnvironmentNotMade, match=r"\.venv\.lock is a folder; move or remove it"):
        check_place(environment)


@pytest.mark.parametrize(("name", "word"), [("a:b", "colon"), ("a $x", "dollar sign"), ("a\nb", "line break")])
def test_a_path_with_which_no_environment_works_is_named_before_anything_is_made(
    tmp_path: Path, name: str, word: str
) -> None:
    course = tmp_path / name
    course.mkdir()
    with pytest.raises(EnvironmentNotMade, match=f"has a {word} in it"):
        check_place(Environment(course))
    assert not list(course.iterdir())


def test_what_has_the_place_of_the_environment_is_not_touched(environment: Environment) -> None:
    shutil.rmtree(environment.folder)
    environment.folder.write_text("mine")
    with pytest.raises(EnvironmentNotMade, match=r"\.venv is a file; move or remove it"):
        check_place(environment)
    assert environment.folder.read_text() == "mine"
    environment.folder.unlink()
    environment.folder.symlink_to("nowhere")
    for target in ("nowhere", environment.folder.name):
        environment.folder.unlink()
        environment.folder.symlink_to(target)
        with pytest.raises(EnvironmentNotMade, match=r"\.venv is a dangling link"):
            check_place(environment)
    environment.folder.unlink()
    environment.folder.mkdir()
    (environment.folder / "thesis.tex").write_text("mine")
    with pytest.raises(EnvironmentNotMade, match="contains files that are not a Python environment"):
        check_place(environment)


def test_somebody_elses_course_is_not_set_up(environment: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write everywhere
    with pytest.raises(
        EnvironmentNotMade, match=r"belongs to \S+ and needs setting up; \S+ runs `make setup` in it once"
    ):
        check_may_write(environment)


def test_a_python_that_only_its_owner_may_start_is_named(
    environment: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of pyenv in root's home: its owner's set-up is complete, and repeating it would not help."""
    python = environment.folder / "bin" / "python"
    python.parent.mkdir(parents=True, exist_ok=True)
    python.unlink(missing_ok=True)
    python.symlink_to(tmp_path / "closed" / "python3.11")
    monkeypatch.setattr(os, "geteuid", lambda: 20_000)
    with pytest.raises(EnvironmentNotMade, match=rf"leads to {tmp_path}/closed/python3.11, which you may not start; "):
        check_may_read(environment)


def test_an_environment_that_its_owner_keeps_closed_is_named(
    environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As set-up under umask 077 leaves it."""
    check_may_read(environment)
    monkeypatch.setattr(os, "access", lambda path, mode: not mode & os.R_OK)  # root may read everything
    sentence = rf"\.venv belongs to (\S+) and is closed to others; \1 opens it by `chmod -R a\+rX {environment.folder}`"
    with pytest.raises(EnvironmentNotMade, match=sentence):
        check_may_read(environment)


@small_disks.needs_mounts
def test_a_read_only_file_system_is_named_to_the_owner(tmp_path: Path) -> None:
    program = "import sys, pathlib; from course_tools.setup.virtual_environment import *; "
    program += "check_may_write(Environment(pathlib.Path(sys.argv[1])))"
    finished = processes.run(small_disks.with_disk(tmp_path, "ro", [sys.executable, "-c", program, str(tmp_path)]), 300)
    sentence = f"{tmp_path} is on a read-only file system; copy the course to a folder that you can write to"
    assert sentence in finished.output.splitlines()[-1]


WITHOUT_PROGRAMS = """
import shutil, sys
from pathlib import Path
from course_tools.setup.make_environment import set_up
from course_tools.setup.virtual_environment import Environment
course, disk = map(Path, sys.argv[1:])
shutil.copytree(course, disk, symlinks=True, dirs_exist_ok=True)
try:
    set_up(Environment(disk))
except Exception as error:
    print(type(error).__name__, error)
print("kept:", sorted(file.name for file in (disk / ".venv").iterdir()))
"""


@small_disks.needs_mounts
def test_a_disk_on_which_no_program_may_run_is_named_and_nothing_is_removed(
    environment: Environment, tmp_path_factory: pytest.TempPathFactory
) -> None:
    disk = tmp_path_factory.mktemp("disk")
    command = [sys.executable, "-c", WITHOUT_PROGRAMS, str(environment.course), str(disk)]
    finished = processes.run(small_disks.with_disk(disk, "size=8g,noexec", command), 300)
    sentence = f"No program may run on the disk of {disk / '.venv'} (noexec); move the course to another."
    kept = sorted(file.name for file in environment.folder.iterdir())
    assert finished.output.splitlines() == [f"EnvironmentNotMade {sentence}", f"kept: {kept}"]
