"""The event log of a run: every message, computation and reduction with its times, kept in compact columns."""

from array import array
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from struct import Struct
from typing import NamedTuple

import numpy as np

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


class Events:
    """The events of a run, ordered by start; at the same start, in the order in which the cluster did them.

    `columns` is the same as one structured NumPy array with the fields kind (an index into KINDS), rank, partner (−1
    for none), bytes, start, end and operation. With millions of events work on this array.
    """

    def __init__(self, make_columns: Callable[[], np.ndarray], contents: Mapping[int, Content]) -> None:
        """`make_columns` gives the columns when they are needed first; `contents` is by operation number."""
        self._make_columns = make_columns
        self._contents = contents

    @cached_property
    def columns(self) -> np.ndarray:
        """The events as one array of dtype COLUMNS."""
        columns = self._make_columns()
        del self._make_columns  # and with it the log that they were made from
        return columns

    def __len__(self) -> int:
        return len(self.columns)

    def __getitem__(self, index: int) -> Event:
        return self._event(*self.columns[index].item())

    def __iter__(self) -> Iterator[Event]:
        return (self._event(*row.item()) for row in self.columns)

    def select(self, kind: str | None = None, rank: int | None = None) -> "Events":
        """The events that agree with every argument; ValueError for a kind that is not one of KINDS."""
        selected = np.ones(len(self), bool)
        if kind is not None:
            selected &= self.columns["kind"] == KINDS.index(kind)
        if rank is not None:
            selected &= self.columns["rank"] == rank
        columns = self.columns[selected]
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
    contents: what the operations moved and made, by number, if the run keeps contents (`with_contents`).
    """

    def __init__(self, with_contents: bool) -> None:
        """An empty log."""
        self.records = bytearray()
        self.with_contents = with_contents
        self.contents: dict[int, Content] = {}
        # The instants at which ranks went on, in virtual seconds, and the number of operations recorded before each.
        self._instants = array("d")
        self._recorded_before = array("q")
        self._delays = bytearray()

    def begin(self, instant: float) -> None:
        """All operations recorded from here on, up to the next call, begin at `instant`, in virtual seconds."""
        self._instants.append(instant)
        self._recorded_before.append(len(self.records) // RECORD.size)

    def delay(self, start: float, end: float) -> None:
        """The message recorded last is on the receiver's port from `start` to `end`, later than on the sender's."""
        self._delays += DELAY.pack(len(self.records) // RECORD.size - 1, start, end)

    def keep(self, array: np.ndarray) -> None:
        """Keep, as the content of the last operation, `array` and the array in memory that it is a view of."""
        buffer = array
        while isinstance(buffer.base, np.ndarray):
            buffer = buffer.base
        distance = array.__array_interface__["data"][0] - buffer.__array_interface__["data"][0]
        position = distance // array.itemsize if array.size else 0
        self.contents[len(self.records) // RECORD.size - 1] = Content(array.copy(), buffer.copy(), position)

    def columns(self, unreceived: Mapping[tuple[int, int], int]) -> np.ndarray:
        """The events as COLUMNS; the last messages counted in `unreceived`, by (source, to), have no receive event."""
        records = np.frombuffer(self.records, _RECORD_COLUMNS)
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
        delays = np.frombuffer(self._delays, _DELAY_COLUMNS)
        arriving, arrived = start, end
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
        for name, value in {"rank": to, "partner": source, "start": arriving, "end": arrived}.items():
            columns[name][is_receive] = value[received]
        return columns
