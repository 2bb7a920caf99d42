"""Ranks without processes: each is a thread of this process, and in a collective they exchange Python objects.

The fake libraries of the labs are built on it. Where real ranks would wait for ever, a rank here ends with an error.
"""

import ctypes
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from distlab.labs.plain_data import Record, as_record

SECONDS = 18.0
_SECONDS_TO_END = 1.0
_WAITING = ("Stalled", "TimeoutError", "Abandoned")  # errors of ranks that wait for one that has failed


class Stalled(Exception):
    """Real ranks would wait for ever; the message says for whom."""


class Abandoned(Exception):
    """Another rank has failed first."""


class _Stopped(BaseException):
    """Ends the thread of a rank that did not end in time; not an Exception, so that few programs catch it."""


class RankError(NamedTuple):
    """An error on a rank: its class and its message."""

    rank: int
    kind: str
    message: str

    @property
    def first_line(self) -> str:
        """Of the message, shortened."""
        lines = [line.strip() for line in self.message.splitlines() if line.strip()]
        return lines[0][:200] if lines else "without a message"

    def __str__(self) -> str:
        return f"{self.kind}: {self.first_line}"


@dataclass(frozen=True)
class Observation:
    """What a program did on every rank: by rank, its value, and class and message of its error, if any.

    There are none where a student has not written it.
    """

    values: list[Any]
    errors: list[tuple[str, str] | None]

    @property
    def is_written(self) -> bool:
        """Whether there is such a program."""
        return bool(self.values)

    @property
    def cause(self) -> RankError | None:
        """The error that explains the others: one of a rank that waits only if no other rank failed."""
        errors = [RankError(rank, *error) for rank, error in enumerate(self.errors) if error]
        order = {kind: place for place, kind in enumerate(_WAITING, start=1)}
        return min(errors, key=lambda error: order.get(error.kind, 0), default=None)

    def records(self, kind: type[Record]) -> list[Record]:
        """The values, by rank, that `plain` has made of dataclasses, when no rank failed."""
        return [as_record(value, kind) for value in self.values]


class FakeJob:
    """`size` ranks, `per_host` of them on each host, and the collectives in which they meet."""

    def __init__(self, size: int, per_host: int, seconds: float = SECONDS, by_node: bool = False) -> None:
        """A rank that still waits when `seconds` have passed is stopped.

        With `by_node` the ranks are dealt out to the hosts one by one; else each host is filled first.
        """
        self.size, self.per_host, self.by_node = size, per_host, by_node
        self._end = time.monotonic() + seconds
        self._changed = threading.Condition()
        self._made: dict[int, tuple[str, Any]] = {}  # the call of each rank that is in the next collective
        self._ended, self._failed = 0, False

    def seconds_left(self) -> float:
        """Until ranks that wait are stopped."""
        return self._end - time.monotonic()

    def meet(self, rank: int, call: str, value: Any) -> list[Any]:
        """Wait until every rank has made the same call; the values of all of them, by rank. Raises Stalled."""
        with self._changed:
            made = self._made
            made[rank] = call, value
            if len(made) == self.size:
                self._made = {}
            self._changed.notify_all()
            # Until nobody is on the way any more: the message names all that never come.
            self._changed.wait_for(lambda: self._failed or len(made) + self._ended >= self.size, self.seconds_left())
        if missing := sorted(set(range(self.size)) - set(made)):
            if self._failed:
                raise Abandoned(f"rank {rank} was left alone in {call}")
            come = "comes" if len(missing) == 1 else "come"
            raise Stalled(f"rank {rank} waits in {call} for {_ranks(missing)}, which never {come}")
        by_rank = [made[peer] for peer in range(self.size)]
        if len({name for name, _ in by_rank}) > 1:
            calls = ", ".join(f"rank {peer} in {name}" for peer, (name, _) in enumerate(by_rank))
            raise Stalled(f"the ranks wait for each other in different calls: {calls}")
        return [contribution for _, contribution in by_rank]

    def end(self, failed: bool) -> None:
        """A rank makes no more calls."""
        with self._changed:
            self._ended += 1
            self._failed |= failed
            self._changed.notify_all()


def _ranks(numbers: Sequence[int]) -> str:
    return f"rank{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"


def run_ranks(job: FakeJob, program: Callable[[int], Any]) -> Observation:
    """Call `program(rank)` in a thread for every rank of a new job.

    A rank that does not end in time has the error TimeoutError, and its thread is ended.
    """
    seen = Observation([None] * job.size, [("TimeoutError", f"rank {rank} did not end") for rank in range(job.size)])

    def live(rank: int) -> None:
        failed = True
        try:
            seen.values[rank], seen.errors[rank] = program(rank), None
            failed = False
        except _Stopped:
            pass
        except BaseException as error:  # SystemExit of a student's program too
            failed = not isinstance(error, (Stalled, Abandoned))
            seen.errors[rank] = (type(error).__name__, str(error))
        finally:
            job.end(failed)

    threads = [threading.Thread(target=live, args=(rank,), daemon=True) for rank in range(job.size)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(0.0, job.seconds_left() + 0.5))
    finally:  # also when an alarm of the check ends the waiting
        job.end(failed=True)
        _stop(threads)
    return seen


def _stop(threads: Sequence[threading.Thread]) -> None:
    """Raise _Stopped in every thread that still runs, and wait a little; a call into C is not interrupted."""
    running = [thread for thread in threads if thread.is_alive()]
    for thread in running:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(_Stopped))
    until = time.monotonic() + _SECONDS_TO_END
    for thread in running:
        thread.join(max(0.0, until - time.monotonic()))
