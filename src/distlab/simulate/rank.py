"""A rank: what a program may ask of it, on the virtual cluster and over MPI alike; and the virtual cluster's own."""

from collections.abc import Awaitable, Generator, Iterator
from heapq import heappop, heappush
from types import coroutine
from typing import Any, Protocol

import numpy as np

from distlab.simulate.errors import ProgramError, check_addable, check_peer, check_seconds, copy_message, not_awaited
from distlab.simulate.events import Log
from distlab.simulate.network import Network

ANY = -1
_add = np.add


class Rank(Protocol):
    """One of `size` processes, number `index` from 0; `now` is its time in seconds since the start.

    Every operation must be awaited at once: `await rank.send(1, array)`.
    """

    @property
    def index(self) -> int:
        """The rank's number, 0 to size − 1."""

    @property
    def size(self) -> int:
        """The number of ranks."""

    @property
    def now(self) -> float:
        """Seconds since the start."""

    def send(self, to: int, array: np.ndarray) -> Awaitable[None]:
        """Send a copy of `array`, of any shape and dtype, to rank `to`; it need not be received for this to end."""

    def receive(self, source: int) -> Awaitable[np.ndarray]:
        """The next message from rank `source`, in the order in which it sent them; waits for it."""

    def receive_any(self) -> Awaitable[tuple[int, np.ndarray]]:
        """The message that arrives first from any rank, as (source, array)."""

    def exchange(self, to: int, array: np.ndarray, source: int) -> Awaitable[np.ndarray]:
        """Send `array` to rank `to` and receive from rank `source` at the same time; ends when both have ended."""

    def reduce(self, array: np.ndarray, addend: np.ndarray) -> Awaitable[np.ndarray]:
        """Add `addend` to `array` in place, and give `array`; shapes and dtypes must be equal.

        A sum that NumPy would broadcast or convert is, between chunks of a collective, a mistake.
        """

    def compute(self, seconds: float) -> Awaitable[None]:
        """Do other work for `seconds`."""


class NumberedRank:
    """What is the same for all ranks: one is no number, and `rank == 0` is an error, since it would never be true."""

    __slots__ = ()

    def __eq__(self, value: object) -> bool:
        if isinstance(value, int | np.integer):
            raise ProgramError(
                f"`rank` itself is never equal to {value}; its number is `rank.index`: write `rank.index == {value}`"
            )
        return self is value

    __hash__ = object.__hash__


class Agenda(dict[float, list[int]]):
    """Which rank continues at which time; in order of time, and at the same time in order of rank.

    `agenda[time].append(index)` lets rank `index` go on at `time`. In a collective many ranks continue at the same
    time, so that there is one entry per time, not per rank: the list of its ranks. A heap has the times in order.
    """

    def __init__(self) -> None:
        """An empty agenda."""
        super().__init__()
        self._times: list[float] = []

    def __missing__(self, time: float) -> list[int]:
        heappush(self._times, time)
        ranks = self[time] = []
        return ranks

    def in_order(self) -> Iterator[tuple[float, list[int]]]:
        """The next time and its ranks, until nothing is left; ranks may be added while this runs."""
        while self._times:
            time = heappop(self._times)
            yield time, sorted(self.pop(time))


@coroutine
def _suspended(rank: "VirtualRank") -> Generator[None, None, Any]:
    """Give control to the cluster until the operation of `rank` has ended; gives the result of that."""
    yield
    result, rank._result = rank._result, None
    return result


@coroutine
def _ended(rank: "VirtualRank", result: object) -> Generator[None, None, Any]:
    """The result of an operation that takes no time: the rank goes on at once."""
    rank._operation = None
    return result
    yield  # never reached; it makes this a generator, which `await` needs


class VirtualRank(NumberedRank):
    """One rank of a virtual cluster; see `distlab.simulate.world` for what its operations cost.

    index: its number, from 0.  size: the number of ranks.  now: its virtual time in seconds.
    messages, bytes_sent: what it has sent so far.
    """

    # Names with a leading underscore belong to the package; slots, because millions of operations go through here.
    __slots__ = (
        "_agenda",
        "_earliest",
        "_every_link",
        "_log",
        "_mailbox",
        "_network",
        "_operation",
        "_peers",
        "_port_free",
        "_result",
        "_source",
        "_speed",
        "bytes_sent",
        "index",
        "messages",
        "now",
        "size",
    )

    def __init__(
        self,
        index: int,
        size: int,
        peers: list["VirtualRank"],
        network: Network,
        speed: float,
        agenda: Agenda,
        log: Log | None,
    ) -> None:
        """`peers` is the list of all ranks, complete when the first program starts; without a `log` nothing is kept."""
        self.index = index
        self.size = size
        self.now = 0.0
        self.messages = self.bytes_sent = 0
        self._peers = peers
        self._network = network
        self._every_link = None if network.links or network.inside_host else network.default_link
        self._speed = speed
        self._agenda = agenda
        self._log = log
        # The operation that is under way, and what its await will give.
        self._operation: str | None = None
        self._result: object = None
        # When the receiving port has taken in the last message that is on its way.
        self._port_free = 0.0
        # Messages on their way or arrived that the program has not asked for: by source, (arrival, array) in order.
        self._mailbox: dict[int, list[tuple[float, np.ndarray]]] = {}
        # Whom the rank waits for (None: it does not wait), and when it can go on at the earliest.
        self._source: int | None = None
        self._earliest = 0.0

    def send(self, to: int, array: np.ndarray) -> Awaitable[None]:
        """See `Rank`; ends when the message has left this rank's sending port."""
        self._begin("send")
        self._agenda[self._transmit(to, array)].append(self.index)
        return _suspended(self)

    def receive(self, source: int) -> Awaitable[np.ndarray]:
        """See `Rank`; ends when the message has arrived."""
        self._begin("receive")
        self._take(source, self.now)
        return _suspended(self)

    def receive_any(self) -> Awaitable[tuple[int, np.ndarray]]:
        """See `Rank`."""
        self._begin("receive_any")
        heads = [(messages[0][0], source) for source, messages in self._mailbox.items() if messages]
        if heads:
            _, first = min(heads)
            self._take(first, self.now)
            self._result = (first, self._result)
        else:
            self._source, self._earliest = ANY, self.now
        return _suspended(self)

    def exchange(self, to: int, array: np.ndarray, source: int) -> Awaitable[np.ndarray]:
        """See `Rank`."""
        self._begin("exchange")
        self._take(source, self._transmit(to, array))
        return _suspended(self)

    def reduce(self, array: np.ndarray, addend: np.ndarray) -> Awaitable[np.ndarray]:
        """See `Rank`; costs γ seconds per byte of `array`."""
        self._begin("reduce")
        check_addable(self.index, array, addend)
        if array.size == 1:
            # For one element, NumPy adds several times faster into new memory than into an operand.
            array[...] = _add(array, addend)
        else:
            _add(array, addend, array)
        end = self.now + array.nbytes * self._network.seconds_per_byte_reduced / self._speed
        if self._log is not None:
            self._log.reduce(self.index, array, self.now, end)
        return self._end_at(end, array)

    def compute(self, seconds: float) -> Awaitable[None]:
        """See `Rank`; on a rank of speed 0.5 it takes twice as long."""
        self._begin("compute")
        check_seconds(self.index, seconds)
        end = self.now + seconds / self._speed
        if self._log is not None:
            self._log.compute(self.index, self.now, end)
        return self._end_at(end)

    def __repr__(self) -> str:
        return f"<rank {self.index} of {self.size} at {self.now:.9g} s>"

    def _begin(self, operation: str) -> None:
        if self._operation is not None:
            raise ProgramError(not_awaited(self.index, self._operation))
        self._operation = operation

    def _end_at(self, end: float, result: object = None) -> Awaitable[Any]:
        if end == self.now:
            return _ended(self, result)
        self._result = result
        self._agenda[end].append(self.index)
        return _suspended(self)

    def _transmit(self, to: int, array: np.ndarray) -> float:
        """Put a message on its way; gives the time at which it has left the sending port."""
        index, now = self.index, self.now
        if type(to) is not int or not 0 <= to < self.size or to == index:
            to = check_peer(index, self.size, to, "sends to")
        receiver = self._peers[to]
        message = array.copy() if type(array) is np.ndarray else copy_message(index, array)
        size = message.nbytes
        link = self._every_link or self._network.link(index, to)
        seconds = link.latency + size * link.seconds_per_byte
        left = now + seconds
        port_free = receiver._port_free
        receiver._port_free = arrived = port_free + seconds if port_free > now else left
        self.messages += 1
        self.bytes_sent += size
        if self._log is not None:
            sent = array if isinstance(array, np.ndarray) else message  # the message itself is a view of nothing
            self._log.message(index, to, sent, now, left, max(port_free, now), arrived)

        awaited = receiver._source
        if awaited is not None and awaited in (index, ANY):
            receiver._source = None
            receiver._result = message if awaited == index else (index, message)
            earliest = receiver._earliest
            self._agenda[arrived if arrived > earliest else earliest].append(to)
        else:
            messages = receiver._mailbox.get(index)
            if messages is None:
                messages = receiver._mailbox[index] = []
            messages.append((arrived, message))
        return left

    def _take(self, source: int, earliest: float) -> None:
        """Go on at `earliest` with the next message of `source`, or else when it has arrived."""
        if type(source) is not int or not 0 <= source < self.size or source == self.index:
            source = check_peer(self.index, self.size, source, "receives from")
        messages = self._mailbox.get(source)
        if messages:
            arrived, self._result = messages.pop(0)
            self._agenda[arrived if arrived > earliest else earliest].append(self.index)
        else:
            self._source, self._earliest = source, earliest
