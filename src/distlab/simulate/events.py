"""The event log of a run: every message, computation and reduction with its times, kept in compact columns."""

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from struct import Struct
from typing import NamedTuple

import numpy as np

KINDS = ("send", "receive", "compute", "reduce")
SEND, RECEIVE, COMPUTE, REDUCE = range(len(KINDS))

COLUMNS = np.dtype(
    [
        ("kind", "i1"),
        ("rank", "<i4"),
        ("partner", "<i4"),
        ("bytes", "<i8"),
        ("start", "<f8"),
        ("end", "<f8"),
        ("operation", "<i8"),
    ]
)
# One event as in COLUMNS, and the two of a message at once, since a run has millions.
_pack, _pack_both = Struct("<biiqddq").pack, Struct("<biiqddqbiiqddq").pack
_NOBODY = -1  # the partner of an event that is no message


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
    """What a run writes its events to, in the order in which the cluster did them.

    contents: what the operations moved and made, by number, if the run keeps contents.
    """

    def __init__(self, with_contents: bool) -> None:
        """An empty log."""
        self.contents: dict[int, Content] = {}
        self._with_contents = with_contents
        self._records = bytearray()
        self._operation = 0

    def message(
        self, source: int, to: int, array: np.ndarray, start: float, left: float, arriving: float, arrived: float
    ) -> None:
        """A message with `array`: from when to when it is on the sender's port, and on the receiver's."""
        size, number = array.nbytes, self._operation
        self._records += _pack_both(
            *(SEND, source, to, size, start, left, number), *(RECEIVE, to, source, size, arriving, arrived, number)
        )
        self._next(array)

    def reduce(self, rank: int, total: np.ndarray, start: float, end: float) -> None:
        """An addition that has made `total`."""
        self._records += _pack(REDUCE, rank, _NOBODY, total.nbytes, start, end, self._operation)
        self._next(total)

    def compute(self, rank: int, start: float, end: float) -> None:
        """Other work."""
        self._records += _pack(COMPUTE, rank, _NOBODY, 0, start, end, self._operation)
        self._operation += 1

    def columns(self, unreceived: Mapping[tuple[int, int], int]) -> np.ndarray:
        """The events as COLUMNS; the last messages counted in `unreceived`, by (source, to), have no receive event."""
        columns = np.frombuffer(self._records, COLUMNS)
        happened = np.ones(len(columns), bool)
        for (source, to), count in unreceived.items():
            receives = (columns["kind"] == RECEIVE) & (columns["rank"] == to) & (columns["partner"] == source)
            happened[np.flatnonzero(receives)[-count:]] = False
        columns = columns[happened]
        # Each receive was recorded right behind its send; a stable sort by time keeps cause before effect.
        return columns[np.argsort(columns["start"], kind="stable")]

    def _next(self, array: np.ndarray) -> None:
        """Keep, as the content of this operation, `array` and the array in memory that it is a view of; go on."""
        if self._with_contents:
            buffer = array
            while isinstance(buffer.base, np.ndarray):
                buffer = buffer.base
            distance = array.__array_interface__["data"][0] - buffer.__array_interface__["data"][0]
            position = distance // array.itemsize if array.size else 0
            self.contents[self._operation] = Content(array.copy(), buffer.copy(), position)
        self._operation += 1
