"""What is seen of a student's Horovod functions on the ranks of the fake Horovod: plain data, by rank.

Six ranks on two hosts, so that rank and local rank, size and local size differ.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from distlab.labs.plain_data import Array, Plain, Record, as_record

SIZE, PER_HOST = 6, 3
HOSTS = SIZE // PER_HOST
MOMENTUM = 0.9

Weights = Sequence[Array]


class GaveNothing(Exception):
    """A function that must return something returned None: it is not written yet."""


class RankError(NamedTuple):
    """An error on a rank: its class and its message."""

    rank: int
    kind: str
    message: str

    def __str__(self) -> str:
        lines = [line.strip() for line in self.message.splitlines() if line.strip()]
        return f"{self.kind}: {lines[0][:200] if lines else 'without a message'}"


@dataclass(frozen=True)
class Observation:
    """What a function did when every rank called it: by rank, its value, and "" or the class and message of its error.

    values: the fields of one of the classes below, by name, or what the function returned.
    """

    is_written: bool
    values: list[Plain]
    kinds: list[str]
    messages: list[str]

    @property
    def errors(self) -> list[RankError]:
        """Those that were raised, by rank."""
        messages = enumerate(zip(self.kinds, self.messages, strict=True))
        return [RankError(rank, kind, message) for rank, (kind, message) in messages if kind]

    @property
    def cause(self) -> RankError | None:
        """The error that explains the others: one of a rank that waits only if no other rank failed."""
        order = {"Abandoned": 3, "TimeoutError": 2, "Stalled": 1}
        return min(self.errors, key=lambda error: order.get(error.kind, 0), default=None)

    def records(self, kind: type[Record]) -> list[Record]:
        """The values, by rank, when no rank failed."""
        return [as_record(value, kind) for value in self.values]


@dataclass(frozen=True)
class Started:
    """After `start`: whether hvd.init was called, and the indices of the GPUs that the rank sees, if it has chosen.

    `hides_cpu`: it has chosen among all devices; −1 among `gpus` is another device.
    """

    is_initialised: bool
    has_chosen: bool
    gpus: list[int]
    hides_cpu: bool


@dataclass(frozen=True)
class Fed:
    """The numbers of the samples that `batches` gave to a rank: [epoch][step][sample]; whether the rest fits them."""

    samples: list[list[list[int]]]
    images_fit: bool
    labels_fit: bool


@dataclass(frozen=True)
class Optimized:
    """What `make_optimizer` made: the class, the learning rate and the momentum."""

    name: str
    rate: float
    momentum: float


@dataclass(frozen=True)
class Begun:
    """What a rank has after `begin`; `slots` are the optimizer's variables."""

    weights: list[Array]
    slots: list[Array]
    epochs_done: int


@dataclass(frozen=True)
class Stepped:
    """What a rank has after `step`, what after another, the loss that the first gave; the tapes wrapped in both."""

    weights: list[Array]
    second: list[Array]
    loss: float | None
    tapes: int


@dataclass(frozen=True)
class Saved:
    """Whether a rank wrote a checkpoint, whether it is found, and what of the state is not in it."""

    has_written: bool
    is_found: bool
    missing: list[str]
