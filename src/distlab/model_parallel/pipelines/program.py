"""A pipeline as a program that every stage runs, on the virtual cluster or over MPI: rank s is stage s."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from distlab.model_parallel.pipelines.orders import BACKWARD, FORWARD, Pass
from distlab.simulate.interface import Rank


class Work(NamedTuple):
    """A pass as it was done: on which stage and when, in seconds since the start."""

    stage: int
    chunk: int
    micro_batch: int
    kind: str
    start: float
    end: float


class Chunk(Protocol):
    """A run of layers on one stage; it keeps what its backward pass needs of every micro-batch under way."""

    forward_seconds: float
    backward_seconds: float

    def forward(self, micro_batch: int, activation: np.ndarray | None) -> np.ndarray:
        """What the next chunk needs; the model's first chunk gets None and takes the micro-batch's inputs itself."""

    def backward(self, micro_batch: int, gradient: np.ndarray | None) -> np.ndarray:
        """The gradient by what `forward` got; the model's last chunk gets None and begins with its own loss."""


async def pipeline(rank: Rank, orders: Sequence[Sequence[Pass]], chunks: Sequence[Chunk]) -> list[Work]:
    """Do the passes of `orders[rank.index]`, one batch; weights stay as they are until the last pass is done.

    orders: of every stage, since a stage knows from its neighbours' orders which message comes next.
    chunks: this stage's.
    Returns what the stage did, in order.
    """
    messages = Messages(rank, orders, len(chunks))
    done = []
    for each in orders[rank.index]:
        chunk = chunks[each.chunk]
        arrived = await messages.take(each)
        start = rank.now
        if each.kind == FORWARD:
            await rank.compute(chunk.forward_seconds)
            result = chunk.forward(each.micro_batch, arrived)
        else:
            await rank.compute(chunk.backward_seconds)
            result = chunk.backward(each.micro_batch, arrived)
        done.append(Work(rank.index, each.chunk, each.micro_batch, each.kind, start, rank.now))
        await messages.pass_on(each, result)
    return done


class Messages:
    """What a stage gets from the stages before and behind it, by the pass that needs it."""

    def __init__(self, rank: Rank, orders: Sequence[Sequence[Pass]], chunks: int) -> None:
        """`orders` of every stage, and the number of chunks of each."""
        self._rank = rank
        self._pieces = rank.size * chunks
        self._arrived: dict[Pass, np.ndarray] = {}
        self._coming: dict[int, list[Pass]] = {}
        for source, order in enumerate(orders):
            following = [self._next(source, each) for each in order]
            self._coming[source] = [each for stage, each in filter(None, following) if stage == rank.index]

    async def take(self, each: Pass) -> np.ndarray | None:
        """The message for this pass, when it has come; None where the model begins, and where its loss is."""
        before = self._before(each)
        if before is None:
            return None
        # Messages of one stage come in the order in which it sends them, which need not be the order of need here.
        while each not in self._arrived:
            self._arrived[self._coming[before].pop(0)] = await self._rank.receive(before)
        return self._arrived.pop(each)

    async def pass_on(self, each: Pass, result: np.ndarray) -> None:
        """Send what a pass gave to the stage that needs it, if any does."""
        following = self._next(self._rank.index, each)
        if following is None:
            return
        stage, needed_by = following
        if stage == self._rank.index:
            self._arrived[needed_by] = result
        else:
            await self._rank.send(stage, result)

    def _next(self, stage: int, each: Pass) -> tuple[int, Pass] | None:
        """The stage and the pass that go on with a micro-batch after `each` on `stage`."""
        return self._at(each.chunk * self._rank.size + stage + (1 if each.kind == FORWARD else -1), each)

    def _before(self, each: Pass) -> int | None:
        """The stage from which a pass of this rank gets its message."""
        piece = each.chunk * self._rank.size + self._rank.index
        found = self._at(piece + (1 if each.kind == BACKWARD else -1), each)
        return found[0] if found else None

    def _at(self, piece: int, each: Pass) -> tuple[int, Pass] | None:
        if not 0 <= piece < self._pieces:
            return None
        return piece % self._rank.size, each._replace(chunk=piece // self._rank.size)
