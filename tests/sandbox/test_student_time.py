"""Which time is a student's: processors and waiting, not a busy machine's."""

import time

from distlab.sandbox.meter import ENDED, Meter, Use
from distlab.sandbox.student_time import Spent, StudentTime


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


def test_a_sleep_counts_and_a_busy_machine_does_not() -> None:
    now = time.monotonic() + 60
    assert waited(Use(0, 0.0, 0.0, now)).passed > 0.1
    assert waited(Use(0, 0.0, 10.0, now)).passed == 0


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
