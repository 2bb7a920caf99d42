"""Processes are found and ended by their mark, whatever they do."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from distlab.runtime import processes


@pytest.mark.slow
def test_end_reaches_a_process_that_ignores_sigterm() -> None:
    mark = processes.new_mark()
    program = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('set', flush=True)"
    program += "; time.sleep(600)"
    process = processes.start([sys.executable, "-c", program], mark, stdout=subprocess.PIPE)
    assert process.stdout.readline() == "set\n"
    processes.end(mark)
    assert not psutil.pid_exists(process.pid)
    assert processes.alive(mark) == []


def test_what_is_started_in_a_marked_block_carries_the_mark_too() -> None:
    outer, inner = processes.new_mark(), processes.new_mark()
    waiting = [sys.executable, "-c", "import sys; print(flush=True); sys.stdin.read()"]
    before = os.environ.get(processes.MARK)
    with processes.marked(outer), processes.marked(inner):
        process = subprocess.Popen(waiting, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        process.stdout.readline()
    assert os.environ.get(processes.MARK) == before
    assert [found.pid for found in processes.alive(outer)] == [found.pid for found in processes.alive(inner)]
    assert process.pid in [found.pid for found in processes.alive(outer)]
    process.communicate()
    assert processes.alive(outer) == []


@pytest.mark.slow
def test_the_guard_does_not_read_the_modules_of_the_working_folder(tmp_path: Path) -> None:
    """A student's socket.py would end it, and after a `kill -9` nobody would end the ranks."""
    (tmp_path / "socket.py").write_text("raise SystemExit('this is not the standard library')\n")
    program = tmp_path / "elsewhere" / "program.py"
    program.parent.mkdir()
    program.write_text(
        "import os, signal, subprocess, sys\n"
        "from distlab.runtime import processes\n"
        "mark = sys.argv[1]\n"
        "with processes.guarded(mark):\n"
        "    waits = [sys.executable, '-c', 'import time; time.sleep(600)']\n"
        "    processes.start(waits, mark)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    mark = processes.new_mark()
    killed = subprocess.run(
        [sys.executable, program, mark], cwd=tmp_path, capture_output=True, timeout=300, check=False
    )
    # The guard holds the error stream until it is done.
    assert (killed.returncode, killed.stderr) == (-signal.SIGKILL, b"")
    assert processes.alive(mark) == []


def test_a_closed_terminal_does_not_end_a_program_that_is_told_to_go_on() -> None:
    code = "import os, signal; from distlab.runtime import processes; processes.end_on_signals(); "
    code += "os.kill(os.getpid(), signal.SIGHUP); print('goes on', flush=True); os.kill(os.getpid(), signal.SIGTERM)"
    done = subprocess.run(["nohup", sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert (done.stdout, done.returncode) == ("goes on\n", 143)


@pytest.mark.slow
def test_a_program_that_runs_too_long_is_ended_with_what_it_started() -> None:
    code = "import subprocess, time; print(subprocess.Popen(['sleep', '600']).pid, flush=True); time.sleep(600)"
    done = processes.run([sys.executable, "-c", code], 5)
    assert done.status is None and not psutil.pid_exists(int(done.output))
