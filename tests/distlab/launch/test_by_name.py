"""The launcher on the command line."""

import json
import subprocess
import sys

import pytest

from tests.distlab.launch.launched_program import Launched


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "course_tools", "launch", *map(str, arguments)]


@pytest.mark.slow
def test_the_command_line_passes_arguments_on(launched: Launched) -> None:
    done = subprocess.run(
        command("--workers", 3, launched.program, "--", "2=say:--workers 9"),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0
    assert "[worker 2] --workers 9" in done.stdout
    assert json.dumps({"type": "worker", "index": 2}) in done.stdout


@pytest.mark.slow
def test_the_command_line_says_what_failed_in_its_exit_status_and_last_lines(launched: Launched) -> None:
    done = subprocess.run(command(launched.program, "--", "1=raise"), capture_output=True, text=True, timeout=300)
    assert done.returncode == 1
    assert "worker 1 failed, exit code 1" in done.stderr
    assert done.stderr.rstrip().endswith("ValueError: the shapes do not fit")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--options=-v"], "--options needs --with mpirun, horovodrun, torchrun: leave it out."),
        (
            ["--with", "mpirun", "--options=-np 4"],
            "Leave -np out of the options of mpirun: `ranks=`, or --workers on the command line, says how many "
            "processes there are.",
        ),
    ],
)
def test_options_that_do_not_go_together_are_refused_in_a_sentence(
    launched: Launched, options: list[str], sentence: str
) -> None:
    done = subprocess.run(command(*options, launched.program), capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr.strip()) == (1, sentence)


@pytest.mark.slow
def test_an_interpreter_of_this_folder_is_not_looked_for_on_the_path(launched: Launched) -> None:
    own = launched.folder / "mpirun"  # a name that PATH knows too
    own.write_text(f'#!/bin/sh\necho mine\nexec "{sys.executable}" "$@"\n')
    own.chmod(0o755)
    words = command("--workers", 1, "--python", "./mpirun", launched.program, "--", "0=say:ran")
    done = subprocess.run(words, cwd=launched.folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "[worker 0] mine" in done.stdout and "[worker 0] ran" in done.stdout
