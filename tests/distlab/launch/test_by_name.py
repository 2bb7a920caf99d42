"""The launcher on the command line."""

import json
import sys
from pathlib import Path

import pytest

from distlab.runtime import processes
from distlab.runtime.processes import Finished
from tests.distlab.launch.launched_program import Launched

pytestmark = pytest.mark.slow


def launch(*arguments: object) -> Finished:
    return processes.run([sys.executable, "-m", "course_tools", "launch", *map(str, arguments)], 300)


def test_the_command_line_passes_arguments_on(launched: Launched) -> None:
    done = launch("--workers", 3, "--python", sys.executable, launched.program, "--", "2=say:--workers 9")
    assert done.status == 0
    assert "[worker 2] --workers 9" in done.output
    assert json.dumps({"type": "worker", "index": 2}) in done.output


def test_the_command_line_says_what_failed_in_its_exit_status_and_last_lines(launched: Launched) -> None:
    done = launch(launched.program, "--", "1=raise")
    assert done.status == 1
    assert "worker 1 failed, exit code 1" in done.output
    assert done.output.rstrip().endswith("ValueError: the shapes do not fit")


def test_an_option_of_another_starter_is_refused(launched: Launched) -> None:
    done = launch("--with", "mpirun", "--servers", 2, launched.program)
    assert (done.status, done.output.strip()) == (1, "--servers has no effect with --with mpirun.")


def test_a_module_of_a_package_is_started_as_python_starts_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "package"
    package.mkdir()
    for name, text in {
        "__init__": "",
        "data": "NUMBER = 42",
        "train": "from .data import NUMBER\nprint(NUMBER)",
    }.items():
        (package / f"{name}.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    for options in ([], ["--with", "mpirun"]):
        done = launch(*options, "-m", "package.train")
        assert done.status == 0 and done.output.count("] 42") == 2
    assert launch("-m", "package.missing").status == 1
