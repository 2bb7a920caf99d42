"""The Makefile: what its variables become, what `make clean` leaves, what ends with make."""

import os
import shutil
import subprocess
from pathlib import Path

import psutil
import pytest

ALONE = ["--old-file", "setup", "--old-file", "environment"]
"""Options of make: without set-up."""


@pytest.mark.parametrize(
    ("words", "command"),
    [
        ("execute ONLY=02,03 DATASET=mnist EPOCHS=5", '--only "02,03" --dataset mnist --epochs 5'),
        ("check LAB=06", "distlab check 06"),
        ("grade SUBMISSIONS=a ONLY=06", 'distlab grade "a" --only "06"'),
    ],
)
def test_variables_become_options_of_the_command(words: str, command: str, root: Path) -> None:
    # As if no make stood above, which hands down its own arguments.
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    calling = ["make", "--dry-run", *ALONE, *words.split()]
    printed = subprocess.run(calling, cwd=root, env=variables, capture_output=True, text=True, check=True).stdout
    assert command in " ".join(printed.replace("\\\n", " ").split())


def test_what_is_started_takes_no_packages_that_the_shell_has_set_for_others(root: Path) -> None:
    variables = {**os.environ, "PYTHONPATH": "/another", "PYTHONHOME": "/nowhere"}
    command = ["make", "--eval", "help: show", "--eval", "show: ; @env", "help"]
    shown = subprocess.run(command, cwd=root, env=variables, capture_output=True, text=True, check=True)
    assert "/.venv/bin:" in shown.stdout
    assert "PYTHONPATH" not in shown.stdout and "PYTHONHOME" not in shown.stdout


def test_clean_leaves_grades_and_what_was_handed_out(root: Path, tmp_path: Path) -> None:
    shutil.copy(root / "Makefile", tmp_path)
    kept = ["build/grades/grades.csv", "build/grades-2026-11-26/grades.csv", "build/release/nbgrader/gradebook.db"]
    for file in [*kept, ".venv/ready", "build/site/index.html", "build/report.json"]:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    subprocess.run(["make", "-C", tmp_path, "clean"], check=True, timeout=60)
    left = {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*") if file.is_file()}
    assert left == {*kept, "Makefile"}


@pytest.mark.slow
def test_what_ends_make_ends_the_program_that_it_runs(root: Path, tmp_path: Path) -> None:
    shutil.copy(root / "Makefile", tmp_path)
    program, started = tmp_path / ".venv" / "bin" / "distlab", tmp_path / "started"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho $$ > started.new\nmv started.new started\nexec sleep 60\n")
    program.chmod(0o755)
    with subprocess.Popen(["make", *ALONE, "execute", "ONLY=06"], cwd=tmp_path, stderr=subprocess.DEVNULL) as making:
        while not started.exists():
            assert making.poll() is None
        running = psutil.Process(int(started.read_text()))
        making.terminate()
        running.wait(10)
    assert not running.is_running()
