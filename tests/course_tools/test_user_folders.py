"""Where a user's results and working copy go."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from course_tools import user_folders
from tests import small_disks

USER = 54321  # has no name


@pytest.fixture(autouse=True)
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty course as the working folder."""
    folder = tmp_path / "course"
    (folder / "labs").mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize("target", [".", "labs", ".."])
def test_a_link_to_the_courses_own_files_is_refused(course: Path, target: str) -> None:
    (course / "work").symlink_to(target)
    with pytest.raises(user_folders.NotAFolder, match=r"work is a link to .*the course's own files are; remove"):
        user_folders.user_folder("work")


def test_a_link_to_another_disk_is_followed(course: Path, tmp_path: Path) -> None:
    (tmp_path / "large").mkdir()
    (course / "build").symlink_to(tmp_path / "large")
    assert user_folders.user_folder("build") == Path("build")


def test_where_the_course_cannot_be_written_to_the_user_s_folder_is_announced(
    course: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert user_folders.announced("build", "results go") == Path("build")
    assert capsys.readouterr().out == ""
    monkeypatch.setattr(os, "access", lambda place, mode: place != course)  # root may write everywhere
    assert user_folders.announced("build", "results go") == tmp_path / "distlab-build"
    assert capsys.readouterr().out == f"This folder cannot be written to: results go to {tmp_path / 'distlab-build'}.\n"


def test_jupyter_gets_folders_of_its_own_where_there_is_no_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IPYTHONDIR", "chosen")
    for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert user_folders.folders_of_jupyter() == {}
    home = tmp_path / "after sudo"
    home.mkdir()
    (home / ".local").touch()  # as little use to Jupyter as a folder of root's
    for place in (home, Path("/proc")):  # where not even root can make a file
        monkeypatch.setenv("HOME", str(place))
        folders = user_folders.folders_of_jupyter()
        assert set(folders) == {"JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"}
        assert all(Path(folder).is_relative_to(tempfile.gettempdir()) for folder in folders.values())


def folder_for(user: int) -> str:
    """What another user is told of the folder `work`, in a process of that user's."""
    reading, writing = os.pipe()
    if os.fork() == 0:
        try:
            os.setresuid(user, user, user)
            os.write(writing, str(user_folders.user_folder("work")).encode())
        except user_folders.NotTheUsers as error:
            os.write(writing, str(error).encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.wait()
    said = os.read(reading, 4096).decode()
    os.close(reading)
    return said


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user")
@pytest.mark.parametrize("place", ["work", "work/notebooks/03_topic.ipynb"])
def test_a_folder_of_root_in_a_course_of_the_user_is_named_and_no_other_is_taken(
    course: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setenv("HOME", "/nowhere")
    for folder in (tmp_path, *tmp_path.parents):
        if folder.owner() == "root" and folder.is_relative_to("/tmp/") and folder != Path("/tmp"):
            folder.chmod(0o755)
    (course / "work/notebooks").mkdir(parents=True)
    (course / "work/notebooks/03_topic.ipynb").touch()
    for path in (course, *course.rglob("*")):
        os.chown(path, USER, USER)
    os.chown(course / place, 0, 0)
    assert folder_for(USER) == f"{place} belongs to root, as after sudo: run `sudo chown -R {USER} work`."
    os.chown(course / place, USER, USER)
    assert folder_for(USER) == "work"
    os.chown(course, 0, 0)
    os.chown(course / "work", 0, 0)
    assert folder_for(USER).endswith("/distlab-work")


def test_a_folder_that_is_not_there_yet_is_the_courses(course: Path) -> None:
    assert user_folders.user_folder("build") == Path("build")


@pytest.mark.slow
@small_disks.needs_mounts
def test_jupyterlab_is_not_started_where_the_home_is_full(course: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    command = small_disks.with_disk(home, "size=4k", [sys.executable, "-m", "course_tools", "lab"])
    variables = os.environ | {"HOME": str(home)}
    ended = subprocess.run(command, cwd=course, env=variables, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert ended.stderr.startswith(f"The disk of HOME={home} is full, and the notebooks' kernels keep files there;")
