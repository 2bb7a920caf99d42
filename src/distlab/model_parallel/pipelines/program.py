"""A pipeline on the virtual cluster: rank s is stage s, and its passes only take time."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from distlab.model_parallel.pipelines.schedules import BACKWARD, FORWARD, Pass, orders
from distlab.simulate import Network, Rank, World

KINDS = (FORWARD, BACKWARD)


class Work(NamedTuple):
    """A pass as it was done: on which stage and when, in seconds since the start."""

    stage: int
    chunk: int
    micro_batch: int
    kind: str
    start: float
    end: float


@dataclass(frozen=True)
class Timing:
    """A schedule as it was run: when each stage did what, how long it waited, how much it kept.

    works: by stage, what it did in order. seconds: until the last stage had finished.
    """

    works: list[list[Work]]
    chunks: int
    seconds: float

    @property
    def bubble_fraction(self) -> float:
        """The share of the devices' time in which they do no pass."""
        busy = sum(work.end - work.start for of_stage in self.works for work in of_stage)
        return 1 - busy / (len(self.works) * self.seconds)

    def activations_held(self, stage: int) -> float:
        """The most micro-batches that wait on this stage for their backward pass, counted in whole stages."""
        waiting, most = 0, 0
        for work in self.works[stage]:
            waiting += 1 if work.kind == FORWARD else -1
            most = max(most, waiting)
        return most / self.chunks


def simulate(
    schedule: str,
    stages: int,
    micro_batches: int,
    chunks: int = 1,
    forward_seconds: float = 1.0,
    backward_seconds: float = 2.0,
    network: Network | None = None,
) -> Timing:
    """Run a schedule; by default messages take no time.

    forward_seconds, backward_seconds: of one micro-batch on a whole stage; each of its chunks takes an equal part.
    Raises ValueError as `orders` does.
    """
    passes = orders(schedule, stages, micro_batches, chunks)
    seconds = {FORWARD: forward_seconds / chunks, BACKWARD: backward_seconds / chunks}

    async def stage(rank: Rank) -> list[Work]:
        messages = _Messages(rank, chunks)
        done = []
        for each in passes[rank.index]:
            await messages.take(each)
            start = rank.now
            await rank.compute(seconds[each.kind])
            done.append(Work(rank.index, each.chunk, each.micro_batch, each.kind, start, rank.now))
            await messages.pass_on(each)
        return done

    world = World(stages, Network(latency=0.0, seconds_per_byte=0.0) if network is None else network)
    run = world.run(stage)
    return Timing(run.results, chunks, run.elapsed)


class _Messages:
    """What a stage gets from the stages before and behind it; a message says which pass it is for."""

    def __init__(self, rank: Rank, chunks: int) -> None:
        self._rank = rank
        self._pieces = rank.size * chunks
        self._arrived: set[Pass] = set()

    async def take(self, each: Pass) -> None:
        """Wait for the message that this pass needs; none where the model begins, and where its loss is."""
        sender = self._neighbour(each, 1 if each.kind == BACKWARD else -1)
        if sender is None:
            return
        # Messages of one stage come in the order in which it sends them, which need not be the order of need here.
        while each not in self._arrived:
            kind, micro_batch, chunk = (await self._rank.receive(sender[0])).tolist()
            self._arrived.add(Pass(KINDS[kind], micro_batch, chunk))

    async def pass_on(self, each: Pass) -> None:
        """Send what a pass gave to the stage that needs it, if any does."""
        following = self._neighbour(each, 1 if each.kind == FORWARD else -1)
        if following is None:
            return
        stage, needed_by = following
        if stage == self._rank.index:
            self._arrived.add(needed_by)
        else:
            await self._rank.send(stage, np.array([KINDS.index(each.kind), *needed_by[1:]]))

    def _neighbour(self, each: Pass, step: int) -> tuple[int, Pass] | None:
        """The same pass one piece of the model behind this stage's (`step` 1) or before it (-1), and its stage."""
        piece = each.chunk * self._rank.size + self._rank.index + step
        if not 0 <= piece < self._pieces:
            return None
        return piece % self._rank.size, each._replace(chunk=piece // self._rank.size)
