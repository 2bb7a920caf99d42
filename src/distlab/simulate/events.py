"""The event log of a run: every message, computation and reduction with its times, kept in compact columns."""

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from struct import Struct
from typing import NamedTuple, overload

import numpy as np

from distlab.runtime.lookups import require_name

KINDS = ("send", "receive", "compute", "reduce")
SEND, RECEIVE, COMPUTE, REDUCE = range(len(KINDS))

COLUMNS = np.dtype(
    [
        ("kind", np.int8),
        ("rank", np.int32),
        ("partner", np.int32),
        ("bytes", np.int64),
        ("start", np.float64),
        ("end", np.float64),
        ("operation", np.int64),
    ]
)

# One record per operation, in the order in which the cluster did them. Its start is that of its instant (`Log`).
RECORD = Struct("<iiqd")
_RECORD_COLUMNS = np.dtype([("rank", "<i4"), ("partner", "<i4"), ("bytes", "<i8"), ("end", "<f8")])
# In a record, the partner of an operation that is not a message says which operation it was.
REDUCES, COMPUTES = -1, -2

# A message that waited for the receiver's port: its number, and its times on that port.
DELAY = Struct("<qdd")
_DELAY_COLUMNS = np.dtype([("operation", "<i8"), ("start", "<f8"), ("end", "<f8")])

# Without events, the records are counted and forgotten when they take more bytes than this.
_MOST_BYTES_UNCOUNTED = 2**20


class Content(NamedTuple):
    """What an operation moved or made, copied when it happened."""

    array: np.ndarray
    buffer: np.ndarray
    position: int


class Event(NamedTuple):
    """Something one rank did.

    kind: "send", "receive", "compute" or "reduce".
    rank: who did it.
    partner: the other end of the message; None for compute and reduce.
    bytes: the size of the message, or of the array added to; 0 for compute.
    start, end: virtual seconds. For a message the time on this rank's own port: the receive event says when the message
        came in, which may be before the program asked for it.
    operation: the number of the operation in the run; the send and the receive of one message have the same number.
    content: the message, or the sum that reduce made; None unless the run kept contents.
    buffer: for send and reduce the whole array that `content` was a part of (a chunk is a view of it), as it was at
        that moment, hence what the rank held; for receive the message. None unless the run kept contents.
    position: where in the flattened buffer the content begins, counted in elements. None unless the run kept contents.
    """

    kind: str
    rank: int
    partner: int | None
    bytes: int
    start: float
    end: float
    operation: int
    content: np.ndarray | None = None
    buffer: np.ndarray | None = None
    position: int | None = None


class Sent(NamedTuple):
    """What each rank sent: `messages` and `bytes`, both int64 (size,)."""

    messages: np.ndarray
    bytes: np.ndarray


def _sent(senders: np.ndarray, sizes: np.ndarray, size: int) -> Sent:
    """What each of `size` ranks sent, from the sender and the bytes of each message."""
    total_bytes = np.zeros(size, np.int64)
    np.add.at(total_bytes, senders, sizes)
    return Sent(np.bincount(senders, minlength=size), total_bytes)


class Events(Sequence[Event]):
    """The events of a run, ordered by start; at the same start, in the order in which the cluster did them.

    `columns` is the same as one structured NumPy array with the fields kind (an index into KINDS), rank, partner (−1
    for none), bytes, start, end and operation. With millions of events work on this array.
    """

    def __init__(
        self,
        make_columns: Callable[[], np.ndarray],
        contents: Mapping[int, Content],
        count_sent: Callable[[], Sent] | None = None,
    ) -> None:
        """`make_columns` gives the columns when they are needed first; `contents` is by operation number.

        count_sent: counts what each rank sent; by default the columns are counted.
        """
        self._make_columns = make_columns
        self._contents = contents
        self._count_sent = count_sent

    @cached_property
    def columns(self) -> np.ndarray:
        """The events as one array of dtype COLUMNS."""
        columns = self._make_columns()
        # The log that they were made from is no longer needed.
        del self._make_columns
        if len(columns):
            self._count_sent = None
        return columns

    def sent_by_rank(self, size: int) -> Sent:
        """What each of `size` ranks sent; where a log has counted it, the columns are not needed."""
        if self._count_sent is not None:
            return self._count_sent()
        is_sent = self.columns["kind"] == SEND
        return _sent(self.columns["rank"][is_sent], self.columns["bytes"][is_sent], size)

    def __len__(self) -> int:
        return len(self.columns)

    @overload
    def __getitem__(self, index: int) -> Event: ...

    @overload
    def __getitem__(self, index: slice) -> "Events": ...

    def __getitem__(self, index: int | slice) -> "Event | Events":
        if isinstance(index, slice):
            return self._of(self.columns[index])
        return self._event(*self.columns[index].item())

    def __iter__(self) -> Iterator[Event]:
        return (self._event(*row.item()) for row in self.columns)

    def __repr__(self) -> str:
        counts = ", ".join(f"{(self.columns['kind'] == code).sum()} {kind}" for code, kind in enumerate(KINDS))
        return f"<Events: {counts}>"

    def select(self, kind: str | None = None, rank: int | None = None, partner: int | None = None) -> "Events":
        """The events that agree with every argument.

        Raises NoSuchName, a ValueError, for a kind that is not one of KINDS.
        """
        selected = np.ones(len(self), bool)
        if kind is not None:
            require_name(KINDS, kind, "kind of event")
            selected &= self.columns["kind"] == KINDS.index(kind)
        if rank is not None:
            selected &= self.columns["rank"] == rank
        if partner is not None:
            selected &= self.columns["partner"] == partner
        return self._of(self.columns[selected])

    def _of(self, columns: np.ndarray) -> "Events":
        return Events(lambda: columns, self._contents)

    def _event(self, code: int, rank: int, partner: int, size: int, start: float, end: float, operation: int) -> Event:
        content = self._contents.get(operation)
        if content is not None and code == RECEIVE:
            content = Content(content.array, content.array, 0)
        what = content or (None, None, None)
        return Event(KINDS[code], rank, None if partner < 0 else partner, size, start, end, operation, *what)


class Log:
    """What a run writes its records to, and what its events are read from.

    records: one RECORD for each operation.
    contents: what the operations moved and made, by number, if the run keeps contents.
    """

    def __init__(self, size: int, keep_events: bool = True) -> None:
        """An empty log of `size` ranks; without events it only counts what the ranks send."""
        self.records = bytearray()
        self.contents: dict[int, Content] = {}
        self._size = size
        self._keeps_events = keep_events
        # The instants at which ranks went on, in virtual seconds, and the number of operations recorded before each.
        self._instants = array("d")
        self._recorded_before = array("q")
        self._delays = bytearray()
        # What was sent by the records that are no longer there.
        self._sent = Sent(np.zeros(size, np.int64), np.zeros(size, np.int64))

    @property
    def last_operation(self) -> int:
        """The number of the operation recorded last."""
        return len(self.records) // RECORD.size - 1

    def begin(self, instant: float) -> None:
        """All operations recorded from here on, up to the next call, begin at `instant`, in virtual seconds."""
        if not self._keeps_events and len(self.records) > _MOST_BYTES_UNCOUNTED:
            self._forget_records()
        self._instants.append(instant)
        self._recorded_before.append(len(self.records) // RECORD.size)

    def delay(self, start: float, end: float) -> None:
        """The message recorded last is on the receiver's port from `start` to `end`, later than on the sender's."""
        self._delays += DELAY.pack(self.last_operation, start, end)

    def keep(self, array: np.ndarray) -> None:
        """Keep, as the content of the last operation, `array` and the array in memory that it is a view of."""
        buffer = array
        while isinstance(buffer.base, np.ndarray):
            buffer = buffer.base
        distance = array.__array_interface__["data"][0] - buffer.__array_interface__["data"][0]
        position = distance // array.itemsize if array.size else 0
        self.contents[self.last_operation] = Content(array.copy(), buffer.copy(), position)

    def events(self, unreceived: Mapping[tuple[int, int], int]) -> Events:
        """The events so far; the last messages counted in `unreceived`, by (source, to), have no receive event."""
        if not self._keeps_events:
            self._forget_records()
        return Events(lambda: self._columns(unreceived), self.contents, self._count_sent)

    def _count_sent(self) -> Sent:
        """What each rank has sent so far."""
        records = _read(self.records, _RECORD_COLUMNS)
        is_message = records["partner"] >= 0
        sent = _sent(records["rank"][is_message], records["bytes"][is_message], self._size)
        return Sent(self._sent.messages + sent.messages, self._sent.bytes + sent.bytes)

    def _forget_records(self) -> None:
        self._sent = self._count_sent()
        self._clear()

    def _clear(self) -> None:
        for column in (self.records, self._delays):
            column.clear()
        del self._instants[:], self._recorded_before[:]

    def _columns(self, unreceived: Mapping[tuple[int, int], int]) -> np.ndarray:
        columns = self._read_columns(unreceived)
        self._clear()
        return columns

    def _read_columns(self, unreceived: Mapping[tuple[int, int], int]) -> np.ndarray:
        records = _read(self.records, _RECORD_COLUMNS)
        source, to, end = records["rank"], records["partner"], records["end"]
        start = np.repeat(self._instants, np.diff(self._recorded_before, append=len(records)))
        kind = np.full(len(records), SEND, np.int8)
        kind[to == REDUCES] = REDUCE
        kind[to == COMPUTES] = COMPUTE
        was_received = kind == SEND
        for (sender, receiver), count in unreceived.items():
            between = (source == sender) & (to == receiver)
            was_received[np.flatnonzero(between)[-count:]] = False

        # The times of a message on the receiver's port are those on the sender's, unless it was delayed.
        arriving, arrived = start, end
        delays = _read(self._delays, _DELAY_COLUMNS)
        if len(delays):
            arriving, arrived = start.copy(), end.copy()
            arriving[delays["operation"]] = delays["start"]
            arrived[delays["operation"]] = delays["end"]

        # Each receive goes right behind its send; the sort by time is stable and so keeps cause before effect.
        operation = np.repeat(np.arange(len(records)), 1 + was_received)
        is_receive = np.zeros(len(operation), bool)
        is_receive[1:] = operation[1:] == operation[:-1]
        if len(delays):
            order = np.argsort(np.where(is_receive, arriving[operation], start[operation]), kind="stable")
            operation, is_receive = operation[order], is_receive[order]

        columns = np.empty(len(operation), COLUMNS)
        columns["operation"] = operation
        values = {"kind": kind, "bytes": records["bytes"], "rank": source, "partner": to, "start": start, "end": end}
        for name, value in values.items():
            columns[name] = value[operation]
        columns["partner"][columns["partner"] < 0] = -1
        columns["kind"][is_receive] = RECEIVE
        received = operation[is_receive]
        of_receiver = {"rank": to, "partner": source}
        if len(delays):
            of_receiver |= {"start": arriving, "end": arrived}
        for name, value in of_receiver.items():
            columns[name][is_receive] = value[received]
        return columns


def _read(packed: bytearray, columns: np.dtype) -> np.ndarray:
    """The records in `packed`, as a view of it."""
    return np.frombuffer(packed, columns) if packed else np.empty(0, columns)
