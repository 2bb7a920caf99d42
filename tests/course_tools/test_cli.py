"""The command line as a whole: mistakes and interrupts end in one sentence."""

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from course_tools import cli
from distlab.runtime import processes

pytestmark = [pytest.mark.slow, pytest.mark.fault]
DISTLAB = [sys.executable, "-m", "course_tools.cli"]


def test_a_terminal_of_ascii_shows_all_it_can() -> None:
    options = {"env": {**os.environ, "PYTHONIOENCODING": "ascii"}}
    finished = processes.run([*DISTLAB, "predict", "--published"], 600, **options)
    assert finished.status == 0, finished.output
    assert "\\u" in finished.output or "\\x" in finished.output, "nothing in it was beyond ASCII"


def test_a_working_folder_that_was_removed_is_named(tmp_path: Path) -> None:
    command = f"mkdir gone && cd gone && rmdir ../gone && '{sys.executable}' -P -m course_tools.cli execute"
    finished = processes.run(["sh", "-c", command], 300, cwd=tmp_path)
    assert finished.status == 2
    assert finished.output.strip() == "The working folder does not exist any more; change to another one."


@pytest.mark.parametrize(
    ("variables", "fix"),
    [
        ({"LD_LIBRARY_PATH": "{folder}"}, "LD_LIBRARY_PATH in your shell leads there: `unset LD_LIBRARY_PATH`"),
        (
            {"LD_LIBRARY_PATH": "/elsewhere"},
            "`unset LD_LIBRARY_PATH`, which is set in your shell and may lead to others",
        ),
        ({}, "install what it belongs to again, then repeat"),
    ],
)
def test_a_broken_library_is_named_with_the_variable_that_leads_to_it(
    tmp_path: Path, variables: dict[str, str], fix: str
) -> None:
    (tmp_path / "libstdc++.so.6").write_text("no library")
    (tmp_path / "numpy.py").write_text(f"raise ImportError('{tmp_path}/libstdc++.so.6: file too short')")
    environment = os.environ | {name: value.format(folder=tmp_path) for name, value in variables.items()}
    finished = processes.run([*DISTLAB, "doctor"], 300, env=environment, cwd=tmp_path)
    assert finished.status == 1, finished.output
    [line] = finished.output.splitlines()
    assert line.startswith(f"The library {tmp_path}/libstdc++.so.6 cannot be loaded (file too short); ")
    assert line.partition("(file too short); ")[2].startswith(fix)


def test_packages_of_others_that_a_shell_has_set_are_named_and_not_used(tmp_path: Path) -> None:
    """Neither by the command nor by what it launches, which finds the other places of PYTHONPATH."""
    others, own = tmp_path / "others", tmp_path / "own"
    (others / "numpy").mkdir(parents=True)
    (others / "numpy" / "__init__.py").write_text("__version__ = '1.21.6'\n")
    own.mkdir()
    (own / "my_layers.py").touch()
    (tmp_path / "program.py").write_text("import numpy.typing, my_layers\nprint('numpy', numpy.__version__ > '2')\n")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, [others, own]))}
    finished = processes.run([*DISTLAB, "launch", str(tmp_path / "program.py")], 600, env=environment)
    assert finished.status == 0, finished.output
    sentence = f"PYTHONPATH names {others}, whose numpy is not the course's: that folder is not used."
    assert finished.output.count(sentence) == 1
    assert "numpy True" in finished.output


def test_options_of_the_program_before_the_dashes_are_told_where_they_belong() -> None:
    finished = processes.run([*DISTLAB, "launch", "train.py", "--steps", "20"], 300)
    assert finished.status == 2
    assert "unrecognized arguments: --steps 20; the program's own arguments follow after --" in finished.output
    assert len(finished.output.splitlines()) == 1


@pytest.mark.parametrize("count", ["-np 2", "--ntasks=2"])
def test_another_launcher_s_number_of_processes_is_called_workers(count: str) -> None:
    finished = processes.run([*DISTLAB, "launch", "--with", "mpirun", *count.split(), "train.py"], 300)
    assert (finished.status, len(finished.output.splitlines())) == (2, 1)
    assert finished.output.startswith(f"{count.split()[0]} is --workers here, with each launcher; the program's own")
    assert "unrecognized" not in finished.output


def test_a_blank_among_the_hosts_is_named_and_not_the_program() -> None:
    for words in ("node1:1, node2:1 train.py", "node1: 1,node2:1 train.py", "node1, node2 -- train.py"):
        finished = processes.run([*DISTLAB, "launch", "--hosts", *words.split()], 300)
        assert (finished.status, len(finished.output.splitlines())) == (2, 1)
        assert "write the hosts without blanks: node1:2,node2:2" in finished.output


def test_arguments_after_the_dashes_belong_to_launch_only() -> None:
    finished = processes.run([*DISTLAB, "doctor", "--", "--json"], 300)
    assert (finished.status, len(finished.output.splitlines())) == (2, 1)
    assert "unrecognized arguments: --json" in finished.output


@pytest.mark.parametrize("arguments", ["--workers 0", "--workers two", "--servers 0", "--nodes 0"])
def test_a_number_of_processes_that_cannot_be_is_refused_in_one_sentence(arguments: str) -> None:
    finished = processes.run([*DISTLAB, "launch", "train.py", *arguments.split()], 300)
    assert (finished.status, len(finished.output.splitlines())) == (2, 1)
    assert finished.output.startswith(f"argument {arguments.split()[0]}: ")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["--workers", "2", "--", "train.py"],
            "the program is missing, which stands before --: distlab launch PROGRAM",
        ),
        (["–workers", "2", "train.py"], "–workers begins with a dash, not with two hyphens: type --workers"),
    ],
)
def test_a_line_copied_from_elsewhere_says_how_to_write_it(arguments: list[str], sentence: str) -> None:
    finished = processes.run([*DISTLAB, "launch", *arguments], 300)
    assert (finished.status, len(finished.output.splitlines())) == (2, 1)
    assert finished.output.startswith(sentence)


@pytest.mark.parametrize("command", ["predict", "predict --json"])
@pytest.mark.parametrize(
    ("place", "sentence"),
    [
        ("> /dev/full", "The output could not be written, since the disk is full."),
        (">&-", ""),
    ],
)
def test_output_that_has_no_place_ends_in_a_sentence(command: str, place: str, sentence: str) -> None:
    line = f"'{sys.executable}' -m course_tools.cli {command} {place}"
    finished = subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=300)
    assert finished.stderr.strip() == sentence
    assert finished.returncode == (1 if sentence else 0)


def test_a_full_disk_of_a_folder_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def run(arguments: list[str]) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/share/grades")

    monkeypatch.setattr(cli, "_run", run)
    monkeypatch.setattr(os, "dup2", lambda *descriptors: None)
    assert cli.main(["grade"]) == 1
    sentence = "/share/grades could not be written (No space left on device): make room on that disk, and start again."
    assert capsys.readouterr().err.splitlines() == [sentence]


NO_THREADS = """
import argparse, resource, sys, threading
from course_tools import cli
cli.subcommands(argparse.ArgumentParser())  # what is imported later may need memory too
threading.stack_size(1 << 30)
size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + (1 << 29), size + (1 << 29)))
sys.exit(cli.main(["launch", "--seconds", "20", sys.argv[1]]))
"""


@pytest.fixture
def waits(tmp_path: Path) -> str:
    program = tmp_path / "program.py"
    program.write_text("import time\ntime.sleep(60)\n")
    return str(program)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says how much memory a process has mapped")
def test_a_limit_on_memory_that_forbids_threads_ends_in_a_sentence(waits: str) -> None:
    finished = processes.run([sys.executable, "-c", NO_THREADS, waits], 600)
    last = finished.output.splitlines()[-1]
    assert (finished.status, last) == (
        1,
        "The limits of this shell let the program start no more threads; see `ulimit -u` and `ulimit -v`.",
    )
    assert "Traceback" not in finished.output


def test_a_limit_on_open_files_ends_in_a_sentence(waits: str) -> None:
    line = f"ulimit -n 64; exec '{sys.executable}' -m course_tools.cli launch --seconds 20 --workers 64 {waits}"
    finished = processes.run(["bash", "-c", line], 600)
    assert finished.status == 1 and "Traceback" not in finished.output
    last = finished.output.splitlines()[-1]
    assert last.startswith("The limits of this shell let the program open no more files; raise the limit")


def test_a_reader_that_went_away_ends_in_a_sentence() -> None:
    process = subprocess.Popen([*DISTLAB, "predict"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout and process.stderr
    process.stdout.close()
    assert process.stderr.read().strip() == "The output could not be written, since nobody reads it any more."
    assert process.wait(60) == 1


def test_a_machine_without_a_folder_for_temporary_files_is_named(tmp_path: Path) -> None:
    """No file can have any content, so that no folder will do."""
    (tmp_path / "program.py").write_text("print('here')")
    line = f"ulimit -f 0; cd '{tmp_path}'; '{sys.executable}' -m course_tools.cli launch program.py"
    finished = subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=300)
    assert finished.returncode == 1
    sentence = "There is no folder for temporary files that can be written to; set TMPDIR to one."
    assert finished.stderr.strip() == sentence


def test_make_takes_no_packages_that_the_shell_has_set_for_others(root: Path) -> None:
    variables = {**os.environ, "PYTHONPATH": "/another", "PYTHONHOME": "/nowhere"}
    command = ["make", "--eval", "help: show", "--eval", "show: ; @env", "help"]
    shown = subprocess.run(command, cwd=root, env=variables, capture_output=True, text=True, timeout=300, check=True)
    assert "/.venv/bin:" in shown.stdout
    assert "PYTHONPATH" not in shown.stdout and "PYTHONHOME" not in shown.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="looks at what a process has loaded, as Linux shows it")
def test_an_interrupt_while_packages_are_imported_ends_in_a_word() -> None:
    process = subprocess.Popen([*DISTLAB, "predict", "--published"], stderr=subprocess.PIPE, text=True)
    maps = Path(f"/proc/{process.pid}/maps")
    while "numpy" not in maps.read_text():
        time.sleep(0.002)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=300)
    assert (process.returncode, errors.strip()) == (130, "Interrupted.")


def test_an_interrupt_after_which_a_library_fails_is_an_interrupt(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(arguments: list[str]) -> int:
        try:
            raise KeyboardInterrupt if arguments else ValueError
        finally:
            raise AssertionError

    monkeypatch.setattr(cli, "_run", run)
    assert cli.main(["labs"]) == 130
    assert capsys.readouterr().err.strip() == "Interrupted."
    with pytest.raises(AssertionError):
        cli.main([])
