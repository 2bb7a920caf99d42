"""A virtual cluster that runs one program on every rank.

What an operation costs, with α, β of the link and γ of the network (`Network`), for a message or array of n bytes:

- A rank has one sending and one receiving port. Each handles one message at a time, for α + nβ seconds; the two work
  independently of each other and of the rank.
- A message sent at time t occupies the sender's sending port from t to t + α + nβ, which is when `send` ends. It
  occupies the receiver's receiving port for α + nβ as well, from t or, if later, from when that port is free; then it
  has arrived. Messages take a receiving port in the order in which they are sent, at the same instant in order of rank.
  So a message that meets no other arrives at t + α + nβ, and of k messages sent to one rank at the same time the last
  arrives at t + k(α + nβ).
- `receive` ends when the message has arrived: at once if it has already. Sending never waits for the receiver, since a
  message waits in the receiver's memory. What is sent is what the array held at t.
- `exchange`, begun at t, is both at once: it ends at t + α + nβ or, if later, when the other message has arrived.
- `reduce` of an array of n bytes takes nγ, `compute(s)` takes s; on a rank of compute speed v both take 1/v of that.
- All else, the program's own Python too, takes no time.

A rank cannot send to itself: that is an error, as it is in most cases a wrong neighbour.

A run is deterministic: the same program and inputs give the same results, events and times.
"""

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from inspect import iscoroutine
from typing import Any

import numpy as np

from distlab.simulate import missing_awaits
from distlab.simulate.errors import (
    DeadlockError,
    InputsError,
    ProgramError,
    RankFailedError,
    SimulationError,
    UnreceivedMessageError,
    Waiting,
    is_of_asyncio,
    no_operation,
    not_awaited,
    unawaited,
)
from distlab.simulate.events import COLUMNS, Events, Log
from distlab.simulate.network import Network
from distlab.simulate.rank import ANY, Agenda, VirtualRank

Program = Callable[..., Coroutine[Any, Any, object]]


@dataclass(frozen=True, repr=False)
class Run:
    """What a run of a program on a virtual cluster gave.

    results: what the program returned, by rank.
    events: everything that happened (`distlab.simulate.Events`); empty if the run did not keep events.
    finished: the virtual time, in seconds, at which each rank's program ended; float64 (size,).
    messages_by_rank, bytes_sent_by_rank: what each rank sent; int64 (size,).
    """

    results: list[Any]
    events: Events
    finished: np.ndarray
    messages_by_rank: np.ndarray
    bytes_sent_by_rank: np.ndarray

    @property
    def elapsed(self) -> float:
        """The virtual seconds until the last rank had finished."""
        return float(self.finished.max())

    @property
    def bytes_sent(self) -> int:
        """The bytes that all ranks sent together."""
        return int(self.bytes_sent_by_rank.sum())

    @property
    def messages(self) -> int:
        """The messages that all ranks sent together."""
        return int(self.messages_by_rank.sum())

    def __repr__(self) -> str:
        size = len(self.results)
        return f"<Run: {size} ranks, {self.messages} messages, {self.bytes_sent} bytes, {self.elapsed:.9g} s>"


class World:
    """`size` ranks on a network; `run` lets every rank run the same program, in virtual time."""

    def __init__(
        self, size: int, network: Network | None = None, compute_speeds: Mapping[int, float] | None = None
    ) -> None:
        """`compute_speeds` gives ranks, by number, another speed than 1 for `compute` and `reduce`."""
        self.size = size
        self.network = network or Network()
        self.compute_speeds = compute_speeds or {}

    def run(
        self,
        program: Program,
        inputs: Iterable[object] | None = None,
        keep_contents: bool = False,
        keep_events: bool = True,
    ) -> Run:
        """Run `program(rank, input)` on every rank with its own of `inputs`; without inputs `program(rank)`.

        program: an `async def`, or anything else that returns a coroutine when it is called so.
        inputs: one per rank. Every rank gets copies of the arrays in its input (also in lists, tuples and
            dictionaries), as if each had its own memory.
        keep_contents: let the events hold copies of the arrays that were sent and added; for drawing small runs.
        keep_events: False counts messages and bytes but leaves `events` empty; for runs of millions of messages.

        Raises InputsError, ProgramError, DeadlockError, UnreceivedMessageError and RankFailedError, and what a rank's
        operations raise: all are SimulationError, with the events so far in `events`.
        """
        given = None if inputs is None else list(inputs)
        if given is not None and len(given) != self.size:
            raise InputsError(f"{len(given)} inputs for {self.size} ranks: there must be one per rank")
        agenda = Agenda()
        log = Log(keep_contents) if keep_events else None
        ranks: list[VirtualRank] = []
        for index in range(self.size):
            speed = self.compute_speeds.get(index, 1.0)
            ranks.append(VirtualRank(index, self.size, ranks, self.network, speed, agenda, log))
        coroutines: list[Coroutine[Any, Any, object]] = []
        try:
            with missing_awaits.named():
                for rank in ranks:
                    arguments = () if given is None else (_own_copy(given[rank.index]),)
                    coroutines.append(_started(program, rank, *arguments))
                    agenda[0.0].append(rank.index)
                results, finished = _run_all(ranks, coroutines, agenda)
                _check_end(ranks, finished)
        except SimulationError as error:
            error.events = _events(ranks, log)
            raise
        finally:
            for coroutine in coroutines:
                coroutine.close()
        sent = np.array([(rank.messages, rank.bytes_sent) for rank in ranks], np.int64).T
        return Run(results, _events(ranks, log), finished, *sent)


def _started(program: Program, rank: VirtualRank, *arguments: object) -> Coroutine[Any, Any, object]:
    try:
        coroutine = program(rank, *arguments)
    except Exception as error:  # it takes other arguments, or is no coroutine function and failed right away
        raise RankFailedError(rank.index, 0.0, error) from error
    if not iscoroutine(coroutine):
        name = getattr(program, "__name__", "program")
        written = name if name.isidentifier() else "program"  # a lambda has no name
        raise ProgramError(f"{name} is not a coroutine function: write `async def {written}(rank, …)`")
    return coroutine


def _run_all(
    ranks: Sequence[VirtualRank], coroutines: Sequence[Coroutine[Any, Any, object]], agenda: Agenda
) -> tuple[list[Any], np.ndarray]:
    """Let each rank go on when its time has come; gives what each returned and when, NaN where it still waits."""
    results: list[Any] = [None] * len(ranks)
    finished = np.full(len(ranks), np.nan)
    resume = [coroutine.send for coroutine in coroutines]
    for now, ready in agenda.in_order():
        for index in ready:
            rank = ranks[index]
            rank.now = now
            rank._operation = None
            try:
                resume[index](None)
            except StopIteration as end:
                if rank._operation is not None:
                    raise ProgramError(not_awaited(index, rank._operation)) from None
                if iscoroutine(end.value):
                    raise ProgramError(f"rank {index} returns {unawaited(end.value)}") from None
                results[index], finished[index] = end.value, now
            except SimulationError:
                raise
            except Exception as error:
                if rank._operation is not None:  # what it was taken for has failed
                    raise ProgramError(not_awaited(index, rank._operation)) from error
                if is_of_asyncio(error):
                    raise ProgramError(no_operation(index)) from error
                raise RankFailedError(index, now, error) from error
            else:
                if rank._operation is None:
                    raise ProgramError(no_operation(index))
    return results, finished


def _check_end(ranks: Sequence[VirtualRank], finished: np.ndarray) -> None:
    """Raise DeadlockError if ranks still wait, UnreceivedMessageError if messages do."""
    waiting = {}
    for rank in ranks:
        if rank._source is not None:
            source = None if rank._source == ANY else rank._source
            waiting[rank.index] = Waiting(source, rank.now, source is not None and bool(np.isfinite(finished[source])))
    unreceived = _unreceived(ranks)
    if waiting:
        raise DeadlockError(waiting, unreceived)
    if unreceived:
        raise UnreceivedMessageError(unreceived)


def _unreceived(ranks: Sequence[VirtualRank]) -> dict[tuple[int, int], int]:
    """How many messages wait in mailboxes, by (source, to)."""
    return {
        (source, rank.index): len(messages) for rank in ranks for source, messages in rank._mailbox.items() if messages
    }


def _events(ranks: Sequence[VirtualRank], log: Log | None) -> Events:
    if log is None:
        return Events(lambda: np.empty(0, COLUMNS), {})
    unreceived = _unreceived(ranks)
    return Events(lambda: log.columns(unreceived), log.contents)


def _own_copy(value: object) -> object:
    """`value` with copies of the arrays in it; other objects are shared."""
    if isinstance(value, np.ndarray):
        return value.copy()
    if type(value) is list:
        return [_own_copy(item) for item in value]
    if type(value) is tuple:
        return tuple(_own_copy(item) for item in value)
    if type(value) is dict:
        return {key: _own_copy(item) for key, item in value.items()}
    return value
