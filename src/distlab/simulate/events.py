"""The event log of a run: every message, computation and reduction with its times, kept in compact columns."""

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

# One record per operation. A message is one record that gives two events: `start` and `end` are its times on the
# sender's port, `arriving` and `arrived` those on the receiver's.
RECORD = Struct("<biiqdddd")
_RECORD_COLUMNS = np.dtype(
    {
        "names": ["kind", "rank", "partner", "bytes", "start", "end", "arriving", "arrived"],
        "formats": ["i1", "<i4", "<i4", "<i8", "<f8", "<f8", "<f8", "<f8"],
        "offsets": [0, 1, 5, 9, 17, 25, 33, 41],
        "itemsize": RECORD.size,
    }
)


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


class Events(Sequence[Event]):
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
        # The log that they were made from is no longer needed.
        del self._make_columns
        return columns

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
    """What a run writes its records to, and what its events are read from."""

    def __init__(self) -> None:
        """An empty log."""
        self.records = bytearray()
        self.contents: dict[int, Content] = {}

    @property
    def last_operation(self) -> int:
        """The number of the operation recorded last."""
        return len(self.records) // RECORD.size - 1

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
        return Events(lambda: self._columns(unreceived), self.contents)

    def _columns(self, unreceived: Mapping[tuple[int, int], int]) -> np.ndarray:
        records = np.frombuffer(self.records, _RECORD_COLUMNS) if self.records else np.empty(0, _RECORD_COLUMNS)
        was_received = records["kind"] == SEND
        for (source, to), count in unreceived.items():
            between = (records["kind"] == SEND) & (records["rank"] == source) & (records["partner"] == to)
            was_received[np.flatnonzero(between)[-count:]] = False

        # Each receive goes right behind its send; the sort by time is stable and so keeps cause before effect.
        operation = np.repeat(np.arange(len(records)), 1 + was_received)
        is_receive = np.zeros(len(operation), bool)
        is_receive[1:] = operation[1:] == operation[:-1]
        start = np.where(is_receive, records["arriving"][operation], records["start"][operation])
        order = np.argsort(start, kind="stable")
        operation, is_receive = operation[order], is_receive[order]

        columns = np.empty(len(operation), COLUMNS)
        columns["operation"] = operation
        columns["kind"] = np.where(is_receive, RECEIVE, records["kind"][operation])
        columns["bytes"] = records["bytes"][operation]
        for name, receivers in (("rank", "partner"), ("partner", "rank"), ("start", "arriving"), ("end", "arrived")):
            columns[name] = np.where(is_receive, records[receivers][operation], records[name][operation])
        return columns
