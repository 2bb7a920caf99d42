"""Processes are found and ended by their mark, whatever they do."""

import os
import subprocess
import sys

import psutil

from distlab.runtime import processes


def test_marks_of_an_outer_run_reach_inner_processes() -> None:
    outer = processes.new_mark()
    program = "import os; from distlab.runtime import processes as p; print(p.run(['env'], 60).output)"
    process = processes.start([sys.executable, "-c", program], outer, stdout=subprocess.PIPE)
    output, _ = process.communicate(timeout=60)
    marks = next(line for line in output.splitlines() if line.startswith(f"{processes.MARK}=")).split("=")[1].split()
    assert outer in marks and len(marks) >= 2 + len(os.environ.get(processes.MARK, "").split())


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
