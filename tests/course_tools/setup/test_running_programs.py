"""Set-up leaves an environment alone while programs run from it."""

import os
import pwd
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import pytest

from course_tools.setup import make_environment, running_programs
from course_tools.setup.virtual_environment import Environment, EnvironmentNotMade

pytestmark = pytest.mark.fault

WAITS = "import sys; print(flush=True); sys.stdin.read()"
MAPS = f"import mmap, sys; file = open(sys.argv[1]); kept = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ); {WAITS}"
STARTS = f"import subprocess, sys; subprocess.run([sys.argv[1], '-I', '-S', '-c', {WAITS!r}])"


CHECKS = """
import os, sys
from pathlib import Path
from course_tools.setup.virtual_environment import Environment, EnvironmentNotMade, check_may_write
os.setuid(12345)
try:
    check_may_write(Environment(Path(sys.argv[1])))
except EnvironmentNotMade as refusal:
    print(refusal)
"""


class BeginsToInstall(Exception):
    """The environment would be changed."""


@contextmanager
def program(*command: str | Path, executable: Path | None = None, user: int | None = None) -> Iterator[int]:
    """The number of a process that has begun and waits until it is ended."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([*command], executable=executable, user=user, **pipes) as process:
        assert process.stdout
        process.stdout.readline()
        yield process.pid
        process.communicate()


def test_an_environment_from_which_a_program_runs_is_not_touched(environment: Environment) -> None:
    metadata = environment.packages()["numpy-2.0.0.dist-info"]
    metadata.rename(metadata.with_name("numpy-1.26.4.dist-info"))  # as `pip install` in a notebook does
    files = sorted(environment.folder.rglob("*"))
    with program(environment.python, "-I", "-S", "-c", WAITS, "train.py") as pid:
        with pytest.raises(EnvironmentNotMade) as refusal:
            make_environment.set_up(environment)
        assert str(refusal.value).startswith(
            "numpy 1.26.4 is installed, and the course has 2.0.0: making .venv again. But programs run from .venv, "
            f"which would fail: {pid} (python -I -S -c import sys; "
        )
    assert sorted(environment.folder.rglob("*")) == files
    assert running_programs.running(environment) == []


def test_a_changed_lock_is_not_installed_while_a_program_runs(environment: Environment) -> None:
    (environment.course / "pyproject.toml").write_text("[project]\nname = 'another'\n")
    with (
        program(environment.python, "-I", "-S", "-c", WAITS),
        pytest.raises(EnvironmentNotMade, match=r"^requirements.lock or pyproject.toml is another .* But programs"),
    ):
        make_environment.set_up(environment)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere only the path tells")
def test_a_program_of_the_activated_environment_counts_by_its_libraries(environment: Environment) -> None:
    library = environment.folder / "lib" / "library.so"
    library.write_bytes(b"library")
    with program("python", "-I", "-S", "-c", MAPS, library, executable=Path(sys.executable)) as pid:
        assert [running.pid for running in running_programs.running(environment)] == [pid]


def test_what_a_program_has_started_is_not_named_beside_it(environment: Environment) -> None:
    with program(environment.python, "-I", "-S", "-c", STARTS, environment.python) as pid:
        assert [running.pid for running in running_programs.running(environment)] == [pid]


def test_another_set_up_and_other_programs_do_not_count(environment: Environment) -> None:
    with (
        program(environment.python, "-I", "-S", "-c", WAITS, "course_tools.setup.make_environment"),
        program(sys.executable, "-I", "-S", "-c", WAITS, environment.python),
    ):
        assert running_programs.running(environment) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts programs of other users")
def test_others_whose_programs_run_are_named_and_force_does_not_wait_for_them(
    environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    (environment.course / "pyproject.toml").write_text("[project]\nname = 'another'\n")
    nobody = pwd.getpwnam("nobody").pw_uid
    with (
        program(environment.python, "-c", "echo; read line", executable=Path("/bin/sh"), user=12345),
        program(environment.python, "-c", "echo; read line", executable=Path("/bin/sh"), user=nobody),
    ):
        with pytest.raises(EnvironmentNotMade) as refusal:
            make_environment.set_up(environment)
        assert str(refusal.value) == (
            "requirements.lock or pyproject.toml is another than .venv was made of. But programs of other users run "
            "from .venv, which would fail: those of nobody, user 12345. Ask them to end these; `make setup FORCE=1` "
            "does it all the same."
        )
        monkeypatch.setattr(make_environment, "Installer", mock.Mock(side_effect=BeginsToInstall))
        with pytest.raises(BeginsToInstall):
            make_environment.set_up(environment, force=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
def test_whoever_may_only_read_is_told_that_the_owner_sets_it_up_now(environment: Environment) -> None:
    (environment.course / "pyproject.toml").write_text("[project]\nname = 'another'\n")
    for folder in (environment.course, *environment.course.parents):
        if folder == Path(tempfile.gettempdir()):
            break
        folder.chmod(0o755)  # pytest closes its folders to others
    with make_environment.one_at_a_time(environment):
        said = subprocess.run([sys.executable, "-c", CHECKS, str(environment.course)], capture_output=True, text=True)
    assert said.stdout == f"root sets up {environment.course} now: wait some minutes, then repeat the command.\n"
    said = subprocess.run([sys.executable, "-c", CHECKS, str(environment.course)], capture_output=True, text=True)
    assert (
        said.stdout
        == f"{environment.course} belongs to root and needs setting up; root runs `make setup` in it once.\n"
    )
