"""What set-up does with the environment that is there: repaired, or kept until a new one is whole."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from course_tools.setup import make_environment, old_environment
from course_tools.setup.virtual_environment import Environment, EnvironmentNotMade

pytestmark = pytest.mark.fault

LIBRARY = "lib/python3.11/site-packages/numpy.py"
KILLED = """
import sys
from pathlib import Path
from course_tools.setup import make_environment
from course_tools.setup.virtual_environment import Environment
make_environment.system_python = lambda: sys.argv[2]
make_environment.set_up(Environment(Path(sys.argv[1])))
"""


def python_with(course: Path, instead_of_venv: str) -> str:
    """An interpreter that does something else when it is to make an environment."""
    python = course / "python"
    python.unlink(missing_ok=True)  # the former one may be about to start, and cannot be overwritten then
    python.write_text(f'#!/bin/sh\n[ "$2" = venv ] && {instead_of_venv}\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    return str(python)


def kept(environment: Environment) -> list[str]:
    """The files of the environment but for the log."""
    log = environment.log.name
    return sorted(
        str(file.relative_to(environment.folder)) for file in environment.folder.rglob("*") if file.name != log
    )


@pytest.fixture
def damaged(environment: Environment) -> list[str]:
    """The files that the environment has left when it has lost one."""
    (environment.folder / LIBRARY).unlink()
    return kept(environment)


def test_an_environment_that_cannot_be_made_again_stays_as_it_was(
    environment: Environment, damaged: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    python = python_with(environment.course, "exit 1")
    monkeypatch.setattr(make_environment, "system_python", lambda: python)
    for _ in range(2):
        with pytest.raises(EnvironmentNotMade, match="cannot make a virtual environment"):
            make_environment.set_up(environment)
        assert capsys.readouterr().out.endswith("\n.venv is as it was before.\n")
        assert kept(environment) == damaged
        assert environment.log.exists() and not environment.before.exists()


def test_a_disk_with_room_for_only_one_environment_keeps_the_old_one(
    environment: Environment, damaged: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(make_environment, "BYTES_NEEDED", 10**18)
    with pytest.raises(EnvironmentNotMade, match=r"GB left; remove the old \.venv first if you do not need it\.$"):
        make_environment.set_up(environment)
    assert kept(environment) == damaged


def test_what_a_killed_set_up_has_put_aside_comes_back(
    environment: Environment, damaged: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    command = [sys.executable, "-c", KILLED, str(environment.course), python_with(environment.course, "exec sleep 60")]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    while not (environment.before.exists() and environment.log.exists()):
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert kept(environment) != damaged
    python = python_with(environment.course, "exit 1")
    monkeypatch.setattr(make_environment, "system_python", lambda: python)
    with pytest.raises(EnvironmentNotMade, match="cannot make a virtual environment"):
        make_environment.set_up(environment)
    assert kept(environment) == damaged


def test_what_was_put_aside_is_removed_once_the_new_one_is_whole(environment: Environment) -> None:
    environment.before.mkdir()
    (environment.before / "lib").mkdir()
    old_environment.settle(environment)
    assert not environment.before.exists()
    assert environment.reason_to_build() is None


def test_an_unfinished_one_and_one_that_cannot_be_moved_are_emptied(
    environment: Environment, damaged: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Path, target: Path) -> Path:
        raise OSError(16, "Device or resource busy", str(self))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", refuse)
        old_environment.put_aside(environment)
    assert kept(environment) == ["unfinished"] and not environment.before.exists()
    environment.log.touch()
    old_environment.put_aside(environment)
    assert kept(environment) == ["unfinished"] and not environment.before.exists()


def test_programs_that_lost_only_their_permission_get_it_back(
    environment: Environment, capsys: pytest.CaptureFixture[str]
) -> None:
    """As after a copy to a disk or by a program that does not keep it; also deep within a package."""
    metadata = environment.packages()["numpy-2.0.0.dist-info"]
    script, program, text = environment.folder / "bin" / "f2py", metadata.parent / "data" / "cmake", "LICENSE"
    script.write_text("#!/bin/sh\n")
    program.parent.mkdir()
    program.write_bytes(Path(sys.executable).read_bytes()[:64])
    (metadata / text).write_text("yours\n")
    module, library = metadata.parent / "data" / "run.py", metadata.parent / "data" / "libnumpy.so.2"
    module.write_text("#!/usr/bin/env python\n")
    library.write_bytes(program.read_bytes())
    with (metadata / "RECORD").open("a") as record:
        record.write(
            f"../../../bin/f2py,,\ndata/cmake,,\ndata/run.py,,\ndata/libnumpy.so.2,,\n{metadata.name}/{text},,\n"
        )
    assert "missing or damaged" in (environment.reason_to_build() or "")
    make_environment.set_up(environment)
    assert capsys.readouterr().out == (
        "Programs of .venv had lost their permission to execute (2): they have it again.\n"
    )
    assert os.access(script, os.X_OK) and os.access(program, os.X_OK)
    assert not any(file.stat().st_mode & 0o111 for file in (metadata / text, module, library))
    assert environment.reason_to_build() is None
