"""Work on many items, and what happens to the rest when something goes wrong."""

import threading
import time

import pytest

from distlab.runtime.worker_pool import run_all


def test_no_more_items_than_asked_for_are_worked_on_at_a_time_and_results_are_in_order() -> None:
    lock, running, most = threading.Lock(), 0, 0

    def work(item: int) -> int:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.02)
        with lock:
            running -= 1
        return item

    assert run_all(range(8), work, at_once=2) == list(range(8))
    assert most <= 2


@pytest.mark.parametrize("error", [ValueError("no luck"), KeyboardInterrupt()])
def test_an_error_or_interrupt_drops_what_has_not_begun_and_lets_running_work_stop(error: BaseException) -> None:
    stopped, begun = threading.Event(), []

    def work(item: int) -> None:
        begun.append(item)
        if item == 0:
            raise error
        assert stopped.wait(timeout=300), "running work must be told to stop"

    with pytest.raises(type(error)):
        run_all(range(20), work, at_once=2, stop=stopped.set)
    assert stopped.is_set()
    assert len(begun) < 20
