"""The Makefile: what its variables become, what `make clean` leaves, which Python it takes."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest


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
    calling = ["make", "--dry-run", "--old-file", "setup", "--old-file", "environment", *words.split()]
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


def test_make_says_which_python_it_needs_and_finds_the_first_that_fits(root: Path, tmp_path: Path) -> None:
    shutil.copy(root / "Makefile", tmp_path)
    shims, good = tmp_path / "shims", tmp_path / "good"
    for folder in (shims, good):
        folder.mkdir()
    for name in ("python3", "python3.13", "python3.12", "python3.11", "python"):
        (shims / name).write_text("#!/bin/sh\nexit 127\n")  # as pyenv's, which may not start
        (shims / name).chmod(0o755)
    (fits := good / "python3.12").write_text("#!/bin/sh\necho started $0\n")
    fits.chmod(0o755)
    (shims / "which").symlink_to(str(shutil.which("which")))

    def made(path: str, *words: str) -> str:
        command = [str(shutil.which("make")), "-C", str(tmp_path), "environment", *words]
        return subprocess.run(command, env=os.environ | {"PATH": path}, capture_output=True, text=True).stdout

    assert "The course needs Python 3.11, 3.12 or 3.13" in made(f"{shims}")
    assert f"started {fits}" in made(f"{shims}", f"PYTHON={fits}")
    assert f"started {fits}" in made(f"{shims}:{good}")
