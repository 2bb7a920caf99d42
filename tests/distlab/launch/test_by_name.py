"""The launcher on the command line."""

import sys
from pathlib import Path

import pytest

from distlab.runtime import processes
from distlab.runtime.processes import Finished
from tests.distlab.launch.launched_program import Launched

pytestmark = pytest.mark.slow


def launch(*arguments: object) -> Finished:
    return processes.run([sys.executable, "-m", "course_tools", "launch", *map(str, arguments)], 300)


def test_arguments_are_passed_on_and_the_exit_status_and_the_last_lines_say_what_failed(launched: Launched) -> None:
    done = launch("--workers", 3, "--python", sys.executable, launched.program, "--", "2=say:--workers 9", "1=raise")
    assert done.status == 1
    assert "[worker 2] --workers 9" in done.output and "worker 1 failed, exit code 1" in done.output
    assert done.output.rstrip().endswith("ValueError: the shapes do not fit")


def test_a_module_of_a_package_is_started_as_python_starts_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "data.py").write_text("NUMBER = 42")
    (package / "train.py").write_text("from .data import NUMBER\nprint(NUMBER)")
    monkeypatch.chdir(tmp_path)
    for options in ([], ["--with", "mpirun"]):
        done = launch(*options, "-m", "package.train")
        assert done.status == 0 and done.output.count("] 42") == 2
    assert launch("-m", "package.missing").status == 1
