"""What other programs take of the cores of a measurement: by hand, and with a program that does."""

import os
import subprocess
import sys
import time

import pytest

from distlab import devices
from distlab.costs.measured.other_programs import CoreUse, CoreWatch, share_taken


def rank(needed: int, own: float, *busy: float, machine: str = "a") -> CoreUse:
    return CoreUse(machine, needed, own, dict(enumerate(busy)))


@pytest.mark.parametrize(
    ("uses", "share"),
    [
        ([rank(1, 0.9, 0.9, 0.9), rank(1, 0.9, 0.9, 0.9)], 0.0),
        ([rank(1, 0.5, 1.0, 1.0), rank(1, 0.5, 1.0, 1.0)], 0.5),
        ([rank(1, 1.0, 1.0, 1.0, 0.0, 0.0)], 0.0),  # cores are left
        ([rank(1, 1.0, 1.0, 0.0), rank(1, 0.6, 1.0, machine="b")], 0.4),
        ([rank(2, 0.7, 1.0, 1.0)] * 3, 0.0),  # the ranks take turns with each other
        ([rank(2, 0.5, 1.0, 1.0)] * 3, 0.25),
        ([rank(1, 0.9)], 0.0),  # the system does not say
    ],
)
def test_the_machine_with_the_least_for_its_ranks_counts(uses: list[CoreUse], share: float) -> None:
    assert share_taken(uses) == pytest.approx(share)


@pytest.mark.slow
def test_a_program_that_takes_the_same_core_is_noticed() -> None:
    allowed = devices.allowed_cores()
    try:
        os.sched_setaffinity(0, allowed[:1])
        watch = CoreWatch()
        with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as other:
            end = time.monotonic() + 0.8
            while time.monotonic() < end:
                pass
            use = watch.use("here", needed=1)
            other.kill()
    finally:
        os.sched_setaffinity(0, allowed)
    assert list(use.busy) == allowed[:1]
    assert share_taken([use]) > 0.2
