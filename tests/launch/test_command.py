"""The launcher on the command line."""

import json
import subprocess
import sys

from tests.launch.launched_program import Launched


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "distlab.cli", "launch", *map(str, arguments)]


def test_the_command_line_passes_arguments_on(launched: Launched) -> None:
    done = subprocess.run(
        command("--workers", 3, launched.program, "--", "2=say:--workers 9"), capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0
    assert "[worker 2] --workers 9" in done.stdout
    assert json.dumps({"type": "worker", "index": 2}) in done.stdout


def test_the_command_line_says_what_failed_in_its_exit_status_and_last_lines(launched: Launched) -> None:
    done = subprocess.run(command(launched.program, "--", "1=raise"), capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "worker 1 failed, exit code 1" in done.stderr
    assert done.stderr.rstrip().endswith("ValueError: the shapes do not fit")
