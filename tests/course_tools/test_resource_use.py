"""Memory of a run: of all its processes, a shared page counted once."""

import subprocess
import sys
import time

import psutil
import pytest

from course_tools.resource_use import MIB, ResourceUse, memory
from distlab.runtime import processes

pytestmark = pytest.mark.slow

# Takes 200 MiB, forks a process that shares the pages, says so, and waits until its input ends.
SHARES = """
import os, sys
held = bytearray(b"x") * (200 * 2**20)
child = os.fork()
child and print("ready", flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(not psutil.LINUX, reason="only Linux says what processes share")
def test_pages_that_two_processes_share_count_once_and_the_peak_is_noted() -> None:
    mark = processes.new_mark()
    try:
        with ResourceUse(mark) as use:
            process = processes.start(
                [sys.executable, "-c", SHARES], mark, stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
            assert process.stdout and process.stdout.readline() == "ready\n"
            assert len(processes.alive(mark)) == 2
            assert 200 < memory(processes.alive(mark)) / MIB < 300
            while use.peak_memory < 200 * MIB:
                time.sleep(0.05)
            process.communicate()
        assert use.peak_memory < 300 * MIB
        assert memory(processes.alive(mark)) == 0
    finally:
        processes.end(mark)
