"""Which time is a student's: processors and waiting, not a busy machine's."""

import signal
import subprocess
import sys
import time

import pytest

from course_tools.sandbox.meter import ENDED, Meter, Use
from course_tools.sandbox.student_time import Spent, StudentTime


def waited(use: Use | None, seconds: float = 0.2) -> Spent:
    """What is counted after the grader waited, when the keeper wrote this."""
    meter = Meter()
    counted = StudentTime(meter)
    counted.waiting(lambda spent: None)
    time.sleep(seconds)
    if use is not None:
        meter.write(0, use)
    spent = counted.answered()
    meter.close()
    return spent


@pytest.mark.slow
def test_a_sleep_counts_and_a_busy_machine_does_not() -> None:
    now = time.monotonic() + 60
    assert waited(Use(0, 0.0, 0.0, now)).passed > 0.1
    assert waited(Use(0, 0.0, 10.0, now)).passed == 0


@pytest.mark.slow
def test_what_no_keeper_has_seen_does_not_count_yet() -> None:
    assert waited(Use(0, 0.0, 0.0, time.monotonic() - 60)).passed == 0
    assert waited(Use(0, 0.0, 0.0, ENDED)).passed > 0.1


def test_either_time_uses_up_an_allowance_and_the_wall_only_far_away() -> None:
    allowance = StudentTime().allow(10)
    none = allowance.start
    for spent, is_used_up, is_starved in (
        (none._replace(processor=none.processor + 10), True, False),
        (none._replace(passed=none.passed + 10), True, False),
        (none._replace(wall=none.wall + 99), False, False),
        (none._replace(wall=none.wall + 100), False, True),
    ):
        assert (allowance.is_used_up(spent), allowance.is_starved(spent)) == (is_used_up, is_starved)


WAITING = """
import time
from course_tools.sandbox.meter import ENDED, Meter, Use
from course_tools.sandbox.student_time import StudentTime
meter = Meter()
counted = StudentTime(meter)
meter.write(0, Use(0, 0.0, 0.0, ENDED))
look = counted.waiting(lambda spent: None)
print("waits", flush=True)
for _ in range(10):
    time.sleep(look())
print(*counted.answered(), flush=True)
"""


@pytest.mark.slow
def test_the_time_in_which_the_grader_is_stopped_is_nobody_s() -> None:
    with subprocess.Popen([sys.executable, "-c", WAITING], stdout=subprocess.PIPE, text=True) as grader:
        assert grader.stdout and grader.stdout.readline() == "waits\n"
        grader.send_signal(signal.SIGSTOP)
        time.sleep(4)
        grader.send_signal(signal.SIGCONT)
        _, passed, wall = map(float, grader.communicate(timeout=300)[0].split())
    assert 0.5 < passed <= wall < 4
