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

from distlab.runtime.arguments import require_kind, wrong
from distlab.simulate import missing_awaits
from distlab.simulate.agenda import Agenda
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
from distlab.simulate.events import Events, Log
from distlab.simulate.network import Network
from distlab.simulate.rank import ANY, VirtualRank

Program = Callable[..., Coroutine[Any, Any, object]]


@dataclass(frozen=True, repr=False)
class Run:
    """What a run of a program on a virtual cluster gave.

    results: what the program returned, by rank.
    events: everything that happened (`distlab.simulate.Events`); empty if the run did not keep events.
    finished: the virtual time, in seconds, at which each rank's program ended; float64 (size,).
    """

    results: list[Any]
    events: Events
    finished: np.ndarray

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

    @property
    def bytes_sent_by_rank(self) -> np.ndarray:
        """The bytes that each rank sent; int64 (size,)."""
        return self.events.sent_by_rank(len(self.results)).bytes

    @property
    def messages_by_rank(self) -> np.ndarray:
        """The messages that each rank sent; int64 (size,)."""
        return self.events.sent_by_rank(len(self.results)).messages

    def __repr__(self) -> str:
        size = len(self.results)
        return f"<Run: {size} ranks, {self.messages} messages, {self.bytes_sent} bytes, {self.elapsed:.9g} s>"


class World:
    """`size` ranks on a network; `run` lets every rank run the same program, in virtual time."""

    def __init__(
        self,
        size: int,
        network: Network | None = None,
        compute_speeds: Mapping[int, float] | Sequence[float] | None = None,
    ) -> None:
        """`compute_speeds` gives ranks another speed than 1 for `compute` and `reduce`: by rank, or one for each.

        Raises ValueError for a size below 1, a speed that is not positive or not a rank's, and a link of the network to
        a rank that there is not; TypeError for a size that is no whole number, or a network of another class.
        """
        if not hasattr(size, "__index__"):
            raise TypeError(f"a world of {size!r} ranks: a whole number is needed")
        if network is not None and not isinstance(network, Network):
            raise TypeError(f"{network!r} is no network: give a simulate.Network, or none")
        if size < 1:
            raise ValueError(f"a world of {size} ranks: at least 1 is needed")
        self.size = size
        self.network = Network() if network is None else network
        self.network.check_ranks(size)
        self.compute_speeds = _speeds(size, compute_speeds)

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
        operations raise: all are SimulationError, with the events so far in `events`. Raises ValueError for
        `keep_contents` without `keep_events`.
        """
        if keep_contents and not keep_events:
            raise ValueError("the events hold the contents: keep_contents needs keep_events")
        if inputs is not None:
            require_kind("inputs", inputs, Iterable, "a list with one array for each rank")
            inputs = list(inputs)
            if len(inputs) != self.size:
                raise InputsError(f"{len(inputs)} inputs for {self.size} ranks: there must be one per rank")
        return _Execution(self, keep_contents, keep_events).run(program, inputs)


class _Execution:
    """One run: the ranks, their coroutines, and the loop that lets each go on when its time has come."""

    def __init__(self, world: World, keep_contents: bool, keep_events: bool) -> None:
        self._log = Log(world.size, keep_events)
        self._agenda = Agenda()
        self._ranks: list[VirtualRank] = []
        for index, speed in enumerate(world.compute_speeds):
            rank = VirtualRank(
                index, world.size, self._ranks, world.network, speed, self._agenda, self._log, keep_contents
            )
            self._ranks.append(rank)
        self._coroutines: list[Coroutine[Any, Any, object]] = []
        self._results: list[Any] = [None] * world.size
        self._finished = np.full(world.size, np.nan)

    def run(self, program: Program, inputs: Sequence[object] | None) -> Run:
        try:
            with missing_awaits.named():
                self._start(program, inputs)
                self._loop()
                self._check_end()
        except SimulationError as error:
            error.events = self._log.events(self._unreceived())
            raise
        finally:
            for coroutine in self._coroutines:
                coroutine.close()
        return Run(self._results, self._log.events({}), self._finished)

    def _start(self, program: Program, inputs: Sequence[object] | None) -> None:
        for rank in self._ranks:
            arguments = () if inputs is None else (_own_copy(inputs[rank.index]),)
            name = getattr(program, "__name__", repr(program))
            if iscoroutine(program):
                program.close()
                raise ProgramError(f"{name}(…) is called already: give the program itself, run({name}, inputs)")
            if not callable(program):
                raise ProgramError(f"{name} is not a program: write `async def {name}(rank, …)`")
            try:
                coroutine = program(rank, *arguments)
            except Exception as error:  # it takes other arguments, or is no coroutine function and failed right away
                raise RankFailedError(rank.index, 0.0, error) from error
            if not iscoroutine(coroutine):
                written = name if name.isidentifier() else "program"  # a lambda has no name
                raise ProgramError(f"{name} is not a coroutine function: write `async def {written}(rank, …)`")
            self._coroutines.append(coroutine)
            self._agenda[0.0].append(rank.index)

    def _loop(self) -> None:
        ranks = self._ranks
        resume = [coroutine.send for coroutine in self._coroutines]
        for now, ready in self._agenda.in_order():
            self._log.begin(now)
            for index in ready:
                rank = ranks[index]
                rank.now = now
                rank._operation = None
                try:
                    resume[index](None)
                except StopIteration as end:
                    self._finish(rank, end.value)
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

    def _finish(self, rank: VirtualRank, result: object) -> None:
        if rank._operation is not None:
            raise ProgramError(not_awaited(rank.index, rank._operation)) from None
        if iscoroutine(result):
            raise ProgramError(f"rank {rank.index} returns {unawaited(result)}") from None
        self._results[rank.index] = result
        self._finished[rank.index] = rank.now

    def _check_end(self) -> None:
        unreceived = self._unreceived()
        waiting = {rank.index: self._waits(rank) for rank in self._ranks if rank._source is not None}
        if waiting:
            raise DeadlockError(waiting, unreceived)
        if unreceived:
            raise UnreceivedMessageError(unreceived)

    def _waits(self, rank: VirtualRank) -> Waiting:
        if rank._source == ANY:
            return Waiting(None, rank.now)
        return Waiting(rank._source, rank.now, source_has_finished=not np.isnan(self._finished[rank._source]))

    def _unreceived(self) -> dict[tuple[int, int], int]:
        """How many messages wait in mailboxes, by (source, to)."""
        return {
            (source, rank.index): len(messages)
            for rank in self._ranks
            for source, messages in rank._mailbox.items()
            if messages
        }


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


def _speeds(size: int, speeds: Mapping[int, float] | Sequence[float] | None) -> list[float]:
    if speeds is None:
        return [1.0] * size
    if not isinstance(speeds, Iterable):
        raise wrong(
            "compute_speeds", speeds, f"one speed for each of {size} ranks, or some by rank, such as {{2: 0.5}}"
        )
    by_rank = dict(speeds) if isinstance(speeds, Mapping) else dict(enumerate(speeds))
    if not isinstance(speeds, Mapping) and len(by_rank) != size:
        raise ValueError(f"{len(by_rank)} compute speeds for {size} ranks")
    for index, speed in by_rank.items():
        if index not in range(size):
            raise ValueError(f"a compute speed for rank {index!r}, but the ranks are 0 to {size - 1}")
        if isinstance(speed, str) or not (np.isfinite(speed) and speed > 0):
            raise ValueError(f"the compute speed of rank {index} is {speed!r}; it must be a number above 0")
    return [float(by_rank.get(index, 1.0)) for index in range(size)]
