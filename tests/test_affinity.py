"""Cores of ranks, and threads that keep to them."""

import json
import os
import subprocess
import sys

import pytest

from distlab import affinity

HOLDING = """
import json, os, threading
from distlab import affinity

def wait():
    started.set()
    stop.wait()

started, stop = threading.Event(), threading.Event()
threads = [threading.Thread(target=wait)]
threads[0].start()
started.wait()
core = affinity.core_of(1, affinity.allowed())
is_held = affinity.hold({core})
threads.append(threading.Thread(target=stop.wait))
threads[1].start()
held = [sorted(os.sched_getaffinity(thread.native_id)) for thread in (threading.main_thread(), *threads)]
stop.set()
print(json.dumps([is_held, core, affinity.allowed(), held]))
"""


@pytest.mark.parametrize(
    ("cores", "expected"), [([0, 1], [0, 1, 0, 1]), ([3], [3, 3, 3, 3]), ([4, 5, 8, 9], [4, 5, 8, 9])]
)
def test_each_rank_has_a_core_of_its_own_until_there_are_no_more(cores: list[int], expected: list[int]) -> None:
    assert [affinity.core_of(rank, cores) for rank in range(4)] == expected


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system does not hold threads to cores")
def test_threads_from_before_and_from_after_are_held() -> None:
    done = subprocess.run([sys.executable, "-c", HOLDING], capture_output=True, text=True, timeout=60, check=True)
    is_held, core, allowed, held = json.loads(done.stdout)
    assert is_held
    assert allowed == [core]
    assert held == [[core]] * 3


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system does not hold threads to cores")
def test_a_core_that_does_not_exist_is_refused_and_nothing_changes() -> None:
    before = affinity.allowed()
    with pytest.raises(OSError):
        affinity.hold({100_000})
    assert affinity.allowed() == before


def test_where_the_system_holds_nothing_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_setaffinity", raising=False)
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert not affinity.hold({0})
    assert affinity.allowed() == list(range(os.cpu_count()))
