"""Work on many items, a few at a time, that an interrupt ends soon and completely."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def run_all(
    items: Iterable[Item],
    work: Callable[[Item], Result],
    at_once: int,
    stop: Callable[[], None] = lambda: None,
) -> list[Result]:
    """What `work` returns for each item, in the order of `items`; at most `at_once` items are worked on at a time.

    The first exception of `work`, or an interrupt such as Ctrl-C, drops every item that has not been started, calls
    `stop` so that running work can end early, waits for that work and is then raised.
    """
    with ThreadPoolExecutor(max_workers=max(1, at_once)) as pool:
        futures = [pool.submit(work, item) for item in items]
        try:
            return [future.result() for future in futures]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            stop()
            raise
