"""Work on items, in a process each: nothing that one does, however it ends, reaches the rest.

concurrent.futures was tried: one process that is killed breaks its pool, and with that the work on all other items.
"""

import multiprocessing
import signal
from collections.abc import Callable, Generator, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar, cast

Item = TypeVar("Item")
Result = TypeVar("Result")
_FORK = multiprocessing.get_context("fork")


def run_apart(
    items: Sequence[Item], work: Callable[[Item], Result], at_once: int
) -> Generator[tuple[Item, Result | None, str], None, None]:
    """Each item with what `work` returns for it, or None and the reason, as they end; at most `at_once` at a time.

    When the iterator is closed, the processes that still run are killed.
    """
    waiting = list(items)
    running: dict[Connection[Any, Any], tuple[Item, BaseProcess]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < at_once:
                item = waiting.pop(0)
                reading, writing = _FORK.Pipe(duplex=False)
                process: BaseProcess = _FORK.Process(target=_do, args=(item, work, writing))
                process.start()
                writing.close()
                running[reading] = item, process
            for ended in wait(list(running)):
                reading = cast("Connection[Any, Any]", ended)
                item, process = running.pop(reading)
                try:
                    result, reason = reading.recv()
                except Exception:  # it was killed, perhaps in the middle of its answer
                    process.join()
                    result, reason = None, f"the process that graded it ended with status {process.exitcode}"
                process.kill()
                process.join()
                yield item, result, reason
    finally:
        for _, process in running.values():
            process.kill()


def _do(item: Item, work: Callable[[Item], Result], writing: "Connection[Any, Any]") -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        writing.send((work(item), ""))
    except BaseException as error:
        writing.send((None, f"{type(error).__name__}: {str(error)[:500]}"))
