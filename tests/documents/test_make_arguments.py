"""Arguments of make's targets: a wrong one ends in one sentence before anything is done."""

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import psutil
import pytest

WITH_ARGUMENTS = re.compile(r"make ([a-z-]+)((?: [A-Z_]+=(?:'[^']*'|[\w.,/]+))+)")


def plan(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """What make would do for these words, without the check of the environment."""
    # As if no make stood above, which hands down its own arguments: `make test AT_ONCE=2`.
    of_make = ("MAKE", "MFLAGS", "AT_ONCE")
    variables = {name: value for name, value in os.environ.items() if not name.startswith(of_make)}
    command = ["make", "--dry-run", "--old-file", "setup", "--old-file", "environment", *words]
    return subprocess.run(command, cwd=root, env=variables, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("figures ONLY=99", "ONLY is for make execute, notebooks, labs, release, grade, slides, bench"),
        ("html ONLY=03", "ONLY is for make execute,"),
        ("site WORKERS=abc", "WORKERS is for make execute only"),
        ("notebooks AT_ONCE=0", "AT_ONCE is for make execute, test, test-all, test-fast, grade only"),
        ("lab LAB=06", "LAB is for make check only"),
        ("notebooks ONLY=", "ONLY= names nothing"),
        ("execute AT_ONCE=", "AT_ONCE= names nothing"),
        ("test AT_ONCE=0", "AT_ONCE=0 makes no sense: it must be 1 or more"),
        ("test-fast AT_ONCE=-1", "AT_ONCE=-1 makes no sense"),
        ("test AT_ONCE=two", "AT_ONCE=two makes no sense"),
        ("execute only=01", "Write only= in capital letters"),
        ("check lab=06", "Write lab= in capital letters"),
        ("execute ONYL=01", "There is no variable ONYL; there are ONLY AT_ONCE"),
        ("cluster NODE=2", "There is no variable NODE; there are"),
        ("execute 01", "01 is no target (make help lists them): name chapters by ONLY=01,03"),
        ("lab 13", "13 is no target"),
        ("lab 3", "3 is no target"),
        ("execute notebooks/01_why_distribute.ipynb", "notebooks/01_why_distribute.ipynb is no target"),
        ("3 7", "3 7 is no target"),
        ("labb", "labb is no target"),
        ("grade SUBMISSIONS=a DUE=2026-11-20 23:59", "23:59 is no target: put day and time into quotes"),
        ("execute SITE=no", "SITE=no makes no sense; write SITE=0"),
        ("site SOLUTIONS=no", "SOLUTIONS=no makes no sense; write SOLUTIONS=0"),
        ("slides EXECUTED=yes", "EXECUTED=yes makes no sense; write EXECUTED=1"),
    ],
)
def test_what_make_itself_refuses_is_one_sentence(words: str, sentence: str, root: Path) -> None:
    refused = plan(root, *words.split())
    assert (refused.returncode, refused.stdout) == (2, "")
    [line] = refused.stderr.splitlines()
    assert sentence in line


@pytest.mark.parametrize(
    ("words", "option"),
    [
        ("execute WORKERS=4 ONLY=03 AT_ONCE=1", '--workers 4 --only "03" --at-once 1'),
        ("setup execute ONLY=03", '--only "03"'),
        ("test AT_ONCE=12", "--numprocesses 12 "),
        ("test", "--numprocesses auto "),
        ("execute SITE=0", "--no-site"),
        ("site SOLUTIONS=0", "--no-solutions"),
    ],
)
def test_right_arguments_reach_the_command(words: str, option: str, root: Path) -> None:
    planned = plan(root, *words.split())
    assert planned.returncode == 0, planned.stderr
    assert option in planned.stdout


@pytest.mark.parametrize("only", ["02 03", "02, 03", "02,03", " 02,,03 "])
@pytest.mark.parametrize("target", ["execute", "notebooks", "labs", "release", "grade", "slides", "bench"])
def test_several_chapters_may_be_written_with_blanks_or_commas(target: str, only: str, root: Path) -> None:
    variables = ["SUBMISSIONS=a"] if target == "grade" else []
    planned = plan(root, target, f"ONLY={only}", *variables)
    assert planned.returncode == 0, planned.stderr
    assert '--only "02,03"' in planned.stdout


@pytest.mark.parametrize("only", ["ddp ps", "ddp,ps"])
def test_several_runs_to_record_may_be_written_with_blanks_or_commas(only: str, root: Path) -> None:
    assert "record.py ddp ps" in plan(root, "record-frameworks", f"ONLY={only}").stdout


@pytest.mark.parametrize(
    ("words", "name", "value"),
    [("execute", "ONLY", "03"), ("grade SUBMISSIONS=a", "SEED", "5"), ("setup", "GPU", "nccl")],
)
def test_a_variable_of_the_shell_is_named_and_not_used(
    words: str, name: str, value: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without = plan(root, *words.split())
    monkeypatch.setenv(name, value)
    planned = plan(root, *words.split())
    assert planned.returncode == 0, planned.stderr
    assert planned.stdout == without.stdout
    assert f"{name} is set in your shell and not used; type it after make if it is meant: make" in planned.stderr


def test_the_documents_name_only_arguments_that_make_takes(root: Path) -> None:
    files = [root / "README.md", root / "Makefile", *root.glob("docs/*.md"), *root.glob("*/src/*.py")]
    found = {match.groups() for file in files for match in WITH_ARGUMENTS.finditer(file.read_text(encoding="utf-8"))}
    assert len(found) > 10
    for target, arguments in found:
        words = [word.rstrip(".,") for word in shlex.split(arguments)]
        planned = plan(root, target, *words)
        assert planned.returncode == 0, planned.stderr


@pytest.mark.slow
@pytest.mark.fault
@pytest.mark.parametrize("words", ["execute ONLY=06", "grade SUBMISSIONS=folder", "check LAB=06", "lab"])
def test_what_ends_make_ends_the_program_that_it_runs(root: Path, tmp_path: Path, words: str) -> None:
    shutil.copy(root / "Makefile", tmp_path)
    (tmp_path / "src" / "distlab").mkdir(parents=True)
    program, started = tmp_path / ".venv" / "bin" / "distlab", tmp_path / "started"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho $$ > started.new\nmv started.new started\nexec sleep 60\n")
    program.chmod(0o755)
    command = ["make", "--old-file", "setup", "--old-file", "environment", *words.split()]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL) as make:
        while not started.exists():
            assert make.poll() is None
        running = psutil.Process(int(started.read_text()))
        make.terminate()
        running.wait(10)
    assert not running.is_running()
