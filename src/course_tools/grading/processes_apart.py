"""Work on items, in a process each, which is killed when it takes too long: nothing that it does reaches the rest."""

import os
import resource
import signal
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe, wait
from typing import Generic, NoReturn, TypeVar, cast

from course_tools.sandbox import system_calls
from distlab.runtime.own_time import WatchedClock

Item = TypeVar("Item")
Result = TypeVar("Result")

_SECONDS_BETWEEN_LOOKS = 1.0


@dataclass(frozen=True)
class Failed:
    """There is no result; the reason is a few words."""

    reason: str


@dataclass(frozen=True)
class ProcessLimits:
    """Seconds for one item: of a processor, and on the wall."""

    processor: float
    wall: float


@dataclass
class _Process(Generic[Item]):
    number: int
    item: Item
    seconds: float
    ends_by: float

    def end(self) -> int:
        """Kill it, if it has not ended; returns how it ended, as `os.waitpid` does."""
        with suppress(ProcessLookupError):
            os.kill(self.number, signal.SIGKILL)
        return os.waitpid(self.number, 0)[1]


def run_apart(
    items: Sequence[Item],
    work: Callable[[Item], Result],
    limits: Callable[[Item], ProcessLimits],
    at_once: int,
    prepare: Callable[[Item, Sequence[Item]], None] = lambda item, running: None,
) -> Generator[tuple[Item, Result | Failed], None, None]:
    """Each item with what `work` returns for it, in the order in which they end; at most `at_once` at a time.

    The processes are forked from this one, which should have no threads. `prepare(item, running)` is called in this
    process before an item starts. When the iterator is closed, or this process ends, so do the processes.
    """
    waiting, clock = list(items), WatchedClock()
    running: dict[Connection[object, object], _Process[Item]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < max(1, at_once):
                item = waiting.pop(0)
                prepare(item, [process.item for process in running.values()])
                reading, process = _started(item, work, limits(item), clock.now())
                running[reading] = process
            ended = [
                reading for reading in wait(list(running), _SECONDS_BETWEEN_LOOKS) if isinstance(reading, Connection)
            ]
            overdue = [
                reading
                for reading, process in running.items()
                if clock.now() > process.ends_by and reading not in ended
            ]
            for reading in ended:
                process = running.pop(reading)
                yield process.item, _result(reading, process)
            for reading in overdue:
                process = running.pop(reading)
                process.end()
                reading.close()
                yield process.item, Failed(f"it was not done after {process.seconds:g} s and was stopped")
    finally:
        for reading, process in running.items():
            process.end()
            reading.close()


def _started(
    item: Item, work: Callable[[Item], Result], limits: ProcessLimits, now: float
) -> tuple["Connection[object, object]", _Process[Item]]:
    reading, writing = Pipe(duplex=False)
    parent = os.getpid()
    sys.stdout.flush()
    sys.stderr.flush()
    number = os.fork()
    if number == 0:
        _do(item, work, limits, writing, parent)
    writing.close()
    return reading, _Process(number, item, limits.wall, now + limits.wall)


def _do(
    item: Item,
    work: Callable[[Item], Result],
    limits: ProcessLimits,
    writing: "Connection[object, object]",
    parent: int,
) -> NoReturn:
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if sys.platform == "linux":
            system_calls.end_with_parent()
        if os.getppid() != parent:
            os._exit(1)
        seconds = int(limits.processor)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
        try:
            result: Result | Failed = work(item)
        except BaseException as error:
            result = Failed(f"{type(error).__name__}: {str(error)[:500]}")
        writing.send(result)
    finally:
        os._exit(0)


def _result(reading: "Connection[object, object]", process: _Process[Item]) -> Result | Failed:
    """What the process sent, which is this course's own code."""
    try:
        result = cast("Result | Failed", reading.recv())
    except EOFError:
        result = Failed("")
    except Exception as error:
        result = Failed(f"its result cannot be read: {type(error).__name__}: {error}")
    reading.close()
    status = os.waitpid(process.number, 0)[1]
    if result == Failed(""):
        ended = f"by {signal.Signals(os.WTERMSIG(status)).name}" if os.WIFSIGNALED(status) else "without a result"
        return Failed(f"the process that graded it ended {ended}")
    return result
