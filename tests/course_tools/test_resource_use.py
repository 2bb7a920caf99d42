"""Memory and processor time of a run: of all its processes, a shared page counted once."""

import os
import subprocess
import sys
import time

import psutil
import pytest

from course_tools.resource_use import MIB, ResourceUse, memory
from distlab.runtime import processes

pytestmark = pytest.mark.slow

# Takes so many MiB, says so, and waits until its input ends.
HOLDS = "import sys; held = bytearray(b'x') * (int(sys.argv[1]) * 2**20); print('ready', flush=True); sys.stdin.read()"
# The same, and forks a process that shares the pages.
SHARES = HOLDS.replace("print(", "import os; child = os.fork(); child and print(")


def holding(program: str, mib: int, mark: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", program, str(mib)]
    process = processes.start(command, mark, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.fixture
def mark() -> str:
    made = processes.new_mark()
    yield made
    processes.end(made)


def test_the_memory_of_all_marked_processes_is_added(mark: str) -> None:
    several = [holding(HOLDS, 100, mark) for _ in range(2)]
    used = memory(processes.alive(mark)) / MIB
    assert 200 < used < 300
    for process in several:
        process.communicate()


@pytest.mark.skipif(not psutil.LINUX, reason="only Linux says what processes share")
def test_pages_that_two_processes_share_count_once(mark: str) -> None:
    process = holding(SHARES, 200, mark)
    assert len(processes.alive(mark)) == 2
    assert 200 < memory(processes.alive(mark)) / MIB < 300
    process.communicate()


def test_a_process_that_has_ended_counts_nothing() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    process = psutil.Process(ended.pid)
    ended.wait()
    assert memory([process]) == 0


def test_the_peak_and_the_processor_time_of_a_block_are_noted(mark: str) -> None:
    busy = "import time\nwhile time.process_time() < 0.5: pass"
    with ResourceUse(mark) as use:
        process = holding(HOLDS, 500, mark)
        subprocess.run([sys.executable, "-c", busy], check=True)
        while use.peak_memory < 500 * MIB:
            time.sleep(0.05)
        process.communicate()
    own = psutil.Process(os.getpid()).memory_info().rss
    assert use.peak_memory < own + 700 * MIB
    assert use.processor_seconds >= 0.5
