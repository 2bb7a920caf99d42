"""The Makefile: its size, what its variables become, what `make clean` leaves, what ends with make."""

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import psutil
import pytest

CALL = re.compile(r"(?<![\w./-])make ([a-z-]+)((?: [A-Z_]+=(?:'[^']*'|[\w.,/]+))*)")
# Of the set-up: where to find what Horovod is built with.
VARIABLES = {"ONLY", "LAB", "SUBMISSIONS", "DATASET", "EPOCHS", "WORKERS", "PYTHON", "GPU", "MPI", "CUDA", "FORCE"}


def make(root: Path, *words: str) -> str:
    """What make prints for these words, as if no make stood above, which hands down its own arguments."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    command = ["make", *words]
    return subprocess.run(
        command, cwd=root, env=variables, capture_output=True, text=True, timeout=60, check=True
    ).stdout


def dry_run(root: Path, *words: str) -> str:
    """What make would do for these words, without set-up."""
    printed = make(root, "--dry-run", "--old-file", "setup", "--old-file", "environment", *words)
    return " ".join(printed.replace("\\\n", " ").split())


def test_its_help_fits_on_a_screen(root: Path) -> None:
    assert 20 <= len(make(root, "help").splitlines()) <= 25


@pytest.mark.parametrize(
    ("words", "command"),
    [
        ("execute", "exec .venv/bin/distlab execute"),
        ("execute ONLY=02,03 DATASET=mnist EPOCHS=5", '--only "02,03" --dataset mnist --epochs 5'),
        ("check LAB=06", "distlab check 06"),
        ("grade SUBMISSIONS=a ONLY=06", 'distlab grade "a" --only "06"'),
        ("lock", "uv pip compile"),
    ],
)
def test_variables_become_options_of_the_command(words: str, command: str, root: Path) -> None:
    assert command in dry_run(root, *words.split())


def test_the_documents_name_only_targets_and_variables_that_there_are(root: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (root / "Makefile").read_text(), re.MULTILINE))
    folders = ("docs/*.md", "*/src/*.py", "src/**/*.py", "labs/*/*.py", "labs/*/*.ipynb", "notebooks/*.ipynb")
    files = [root / "README.md", root / "Makefile", *(file for folder in folders for file in root.glob(folder))]
    calls = {
        (file.name, call[1], tuple(word.partition("=")[0] for word in shlex.split(call[2])))
        for file in files
        for call in CALL.finditer(file.read_text(encoding="utf-8"))
        if call.string[call.start() - 1] == "`"
    }
    assert len(calls) > 30
    assert [call for call in calls if call[1] not in targets or not set(call[2]) <= VARIABLES] == []


def test_what_is_started_takes_no_packages_that_the_shell_has_set_for_others(root: Path) -> None:
    variables = {**os.environ, "PYTHONPATH": "/another", "PYTHONHOME": "/nowhere"}
    command = ["make", "--eval", "help: show", "--eval", "show: ; @env", "help"]
    shown = subprocess.run(command, cwd=root, env=variables, capture_output=True, text=True, timeout=300, check=True)
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
@pytest.mark.parametrize("words", ["execute ONLY=06", "grade SUBMISSIONS=folder", "lab"])
def test_what_ends_make_ends_the_program_that_it_runs(root: Path, tmp_path: Path, words: str) -> None:
    shutil.copy(root / "Makefile", tmp_path)
    program, started = tmp_path / ".venv" / "bin" / "distlab", tmp_path / "started"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho $$ > started.new\nmv started.new started\nexec sleep 60\n")
    program.chmod(0o755)
    command = ["make", "--old-file", "setup", "--old-file", "environment", *words.split()]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL) as making:
        while not started.exists():
            assert making.poll() is None
        running = psutil.Process(int(started.read_text()))
        making.terminate()
        running.wait(10)
    assert not running.is_running()
