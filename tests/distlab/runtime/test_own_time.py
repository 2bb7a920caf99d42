"""The time of a process on a machine that others keep busy."""

import subprocess
import sys
import time

import pytest

from distlab import devices
from distlab.runtime import own_time


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="Linux says how long a thread waits for a processor")
def test_sleeping_counts_and_waiting_for_a_processor_does_not() -> None:
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(5 * devices.cores())]
    try:
        own, began = own_time.OwnTime(), time.monotonic()
        time.sleep(0.2)
        assert own.passed() > 0.1
        until = time.process_time() + 0.5
        while time.process_time() < until:
            pass
        assert own.passed() < 0.6 * (time.monotonic() - began)
    finally:
        for process in busy:
            process.kill()
            process.wait()
