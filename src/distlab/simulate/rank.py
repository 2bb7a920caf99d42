"""A rank: what a program may ask of it, on the virtual cluster and over MPI alike; and the virtual cluster's own."""

from collections.abc import Awaitable, Generator
from types import coroutine
from typing import Any, NoReturn, Protocol

import numpy as np

from distlab.simulate.agenda import Agenda
from distlab.simulate.errors import (
    ProgramError,
    check_addable,
    check_peer,
    check_seconds,
    copy_message,
    not_a_number,
    not_awaited,
)
from distlab.simulate.events import COMPUTES, RECORD, REDUCES, Log
from distlab.simulate.network import Network

ANY = -1
_pack = RECORD.pack
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
        """Add `addend` to `array` in place, and give `array`; shapes and dtypes must be equal."""

    def compute(self, seconds: float) -> Awaitable[None]:
        """Do other work for `seconds`."""


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


class NumberedRank:
    """What is the same for all ranks: one is no number, and `rank == 0` is an error, since it would never be true.

    So is `rank + 1`, with the same advice.
    """

    __slots__ = ()

    def __eq__(self, value: object) -> bool:
        if isinstance(value, int | np.integer):
            raise ProgramError(not_a_number(int(value)))
        return self is value

    __hash__ = object.__hash__

    def _used_as_number(self, *numbers: object) -> NoReturn:
        raise ProgramError("`rank` itself is no number to compute with; its number is `rank.index`")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __mod__ = __rmod__ = _used_as_number
    __floordiv__ = __truediv__ = __xor__ = __rxor__ = __and__ = __rshift__ = _used_as_number
    __lt__ = __le__ = __gt__ = __ge__ = __index__ = _used_as_number


class VirtualRank(NumberedRank):
    """One rank of a virtual cluster; see `distlab.simulate.world` for what its operations cost.

    index: its number, from 0.  size: the number of ranks.  now: its virtual time in seconds.
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
        "_records",
        "_result",
        "_seconds_per_byte_reduced",
        "_source",
        "_speed",
        "_with_contents",
        "index",
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
        log: Log,
        with_contents: bool,
    ) -> None:
        """The world makes the ranks; `peers` is the list of all of them, complete when the first program starts."""
        self.index = index
        self.size = size
        self.now = 0.0
        self._peers = peers
        self._network = network
        self._every_link = network.default_link if network.is_uniform else None
        self._seconds_per_byte_reduced = network.seconds_per_byte_reduced
        self._speed = speed
        self._agenda = agenda
        self._log = log
        self._records = log.records
        self._with_contents = with_contents
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
        """Send a copy of `array` (any shape and dtype) to rank `to`; ends when it has left this rank's sending port."""
        if self._operation is not None:
            raise self._not_awaited()
        self._operation = "send"
        self._agenda[self._transmit(to, array)].append(self.index)
        return _suspended(self)

    def receive(self, source: int) -> Awaitable[np.ndarray]:
        """The next message of rank `source`, in the order in which it sent them; ends when it has arrived."""
        if self._operation is not None:
            raise self._not_awaited()
        self._operation = "receive"
        self._take(source, self.now)
        return _suspended(self)

    def receive_any(self) -> Awaitable[tuple[int, np.ndarray]]:
        """The message that arrives first, from whichever rank, as (source, array)."""
        if self._operation is not None:
            raise self._not_awaited()
        self._operation = "receive_any"
        heads = [(messages[0][0], source) for source, messages in self._mailbox.items() if messages]
        if heads:
            _, first = min(heads)
            self._take(first, self.now)
            self._result = (first, self._result)
        else:
            self._source, self._earliest = ANY, self.now
        return _suspended(self)

    def exchange(self, to: int, array: np.ndarray, source: int) -> Awaitable[np.ndarray]:
        """Send `array` to rank `to` and receive from rank `source` at the same time; ends when both have ended."""
        if self._operation is not None:
            raise self._not_awaited()
        self._operation = "exchange"
        self._take(source, self._transmit(to, array))
        return _suspended(self)

    def reduce(self, array: np.ndarray, addend: np.ndarray) -> Awaitable[np.ndarray]:
        """Add `addend` to `array` in place and give `array`; costs γ seconds per byte of `array`.

        Raises MismatchError unless both are arrays of the same shape and dtype: a sum that NumPy would broadcast or
        convert is, between chunks of a collective, a mistake.
        """
        if self._operation is not None:
            raise self._not_awaited()
        self._operation = "reduce"
        check_addable(self.index, array, addend)
        if array.size == 1:
            # For one element, NumPy adds several times faster into new memory than into an operand.
            array[...] = _add(array, addend)
        else:
            _add(array, addend, array)
        size = array.nbytes
        end = self.now + size * self._seconds_per_byte_reduced / self._speed
        self._records += _pack(self.index, REDUCES, size, end)
        if self._with_contents:
            self._log.keep(array)
        return self._end_at(end, array)

    def compute(self, seconds: float) -> Awaitable[None]:
        """Compute for `seconds` on a rank of speed 1; a rank of speed 0.5 takes twice as long."""
        if self._operation is not None:
            raise self._not_awaited()
        self._operation = "compute"
        check_seconds(self.index, seconds)
        end = self.now + seconds / self._speed
        self._records += _pack(self.index, COMPUTES, 0, end)
        return self._end_at(end)

    def __repr__(self) -> str:
        return f"<rank {self.index} of {self.size} at {self.now:.9g} s>"

    def _not_awaited(self) -> ProgramError:
        return ProgramError(not_awaited(self.index, self._operation or ""))

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
        self._records += _pack(index, to, size, left)
        if receiver._port_free > now:
            arrived = receiver._port_free + seconds
            self._log.delay(receiver._port_free, arrived)
        else:
            arrived = left
        receiver._port_free = arrived
        if self._with_contents:
            self._log.keep(array if isinstance(array, np.ndarray) else message)

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
