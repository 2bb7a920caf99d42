"""Where a user's results and working copy go."""

import os
import tempfile
from pathlib import Path

import pytest

from course_tools import user_folders


def test_where_the_course_cannot_be_written_to_the_user_s_folder_is_announced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    course, home = tmp_path / "course", tmp_path / "home"
    course.mkdir()
    monkeypatch.chdir(course)
    monkeypatch.setenv("HOME", str(home))
    assert user_folders.announced("build", "results go") == Path("build")
    assert capsys.readouterr().out == ""
    for closed, folder in (({course}, home / "distlab-build"), ({course, home}, Path(tempfile.gettempdir()))):
        monkeypatch.setattr(os, "access", lambda place, mode, closed=closed: place not in closed)  # root may write
        expected = folder if folder.name == "distlab-build" else folder / "distlab-build"
        assert user_folders.announced("build", "results go") == expected
        assert capsys.readouterr().out == f"This folder cannot be written to: results go to {expected}.\n"
