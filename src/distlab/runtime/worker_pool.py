"""Work on many items, a few at a time, that an interrupt ends soon and completely."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def run_all(
    items: Iterable[Item],
    work: Callable[[Item], Result],
    at_once: int,
    stop: Callable[[], None] = lambda: None,
    choose: Callable[[Sequence[Item], Sequence[Item]], Item | None] = lambda waiting, running: waiting[0],
) -> list[Result]:
    """What `work` returns for each item, in the order of `items`; at most `at_once` items are worked on at a time.

    `choose(waiting, running)` says which of the waiting items is next, None to wait until one of the running is done;
    while nothing runs it must choose one. The first exception of `work`, or an interrupt such as Ctrl-C, drops every
    item that has not been started, calls `stop` so that running work can end early, waits for that work and is then
    raised.
    """
    results: dict[int, Result] = {}
    waiting = dict(enumerate(items))
    count = len(waiting)
    running: dict[Future[Result], int] = {}
    chosen: dict[int, Item] = {}
    with ThreadPoolExecutor(max_workers=max(1, at_once)) as pool:
        try:
            while waiting or running:
                while waiting and len(running) < max(1, at_once):
                    item = choose(list(waiting.values()), [chosen[number] for number in running.values()])
                    if item is None and running:
                        break
                    number = next((number for number, candidate in waiting.items() if candidate is item), min(waiting))
                    chosen[number] = waiting.pop(number)
                    running[pool.submit(work, chosen[number])] = number
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    results[running.pop(future)] = future.result()
        except BaseException:
            while True:  # a second Ctrl-C must not leave work that nobody stops: leaving the block waits for it
                try:
                    pool.shutdown(wait=False, cancel_futures=True)
                    stop()
                    break
                except KeyboardInterrupt:
                    continue
            raise
    return [results[number] for number in range(count)]
