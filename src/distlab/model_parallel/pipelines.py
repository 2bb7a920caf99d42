"""Pipeline parallelism: the layers are on different devices, and a batch goes through them in micro-batches.

    orders("1f1b", stages=4, micro_batches=8)                  # what each stage does, pass after pass
    simulate("1f1b", 4, 8).bubble_fraction                     # the same on the virtual cluster, in virtual time
    bubble_fraction(4, 8)                                      # by formula

Stages are numbered from the input, p of them; a batch is cut into m micro-batches; a stage holds v chunks of the model,
one unless the schedule is interleaved. Chunk c of stage s is piece c·p + s of the model. In the formulas all stages
take the same time for a micro-batch, t_f forward and t_b backward, and messages take none unless said. An interleaved
stage takes as long for its v chunks together.

Sources: Huang et al., arXiv:1811.06965, section 2.3; Narayanan et al., arXiv:2104.04473, section 2.2; for the memory of
the interleaved schedule Korthikanti et al., arXiv:2205.05198, section 4.2.3 (second-hand).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from distlab.runtime.lookups import look_up, require_name
from distlab.simulate import Network, Rank, World

FORWARD, BACKWARD = KINDS = "forward", "backward"
Numbers = np.ndarray | np.float64


class Pass(NamedTuple):
    """One pass of one micro-batch through one chunk; kind is FORWARD or BACKWARD."""

    kind: str
    micro_batch: int
    chunk: int = 0


def gpipe(stages: int, micro_batches: int, stage: int, chunks: int) -> list[Pass]:
    """All forward passes, then all backward passes, the last first (Huang et al., arXiv:1811.06965, figure 2)."""
    forwards = [Pass(FORWARD, number) for number in range(micro_batches)]
    return forwards + [Pass(BACKWARD, number) for number in reversed(range(micro_batches))]


def one_forward_one_backward(stages: int, micro_batches: int, stage: int, chunks: int) -> list[Pass]:
    """As many forward passes as stages follow, then one forward and one backward in turn, then the rest backward.

    So at most p − s micro-batches are under way on stage s, not m (Narayanan et al., arXiv:2104.04473, section 2.2.1
    and figure 4; PipeDream-Flush).
    """
    forwards = [Pass(FORWARD, number) for number in range(micro_batches)]
    backwards = [Pass(BACKWARD, number) for number in range(micro_batches)]
    return _in_turn(forwards, backwards, ahead=stages - stage - 1)


def interleaved(stages: int, micro_batches: int, stage: int, chunks: int) -> list[Pass]:
    """1F1B with v chunks a stage: p micro-batches go through chunk 0, the same p through chunk 1, and so on.

    The bubble is v times shorter, and there are v times as many messages (Narayanan et al., arXiv:2104.04473, section
    2.2.2). Raises ValueError unless the micro-batches are a multiple of the stages, as the paper asks.
    """
    if micro_batches % stages:
        raise ValueError(
            f"{micro_batches} micro-batches on {stages} stages: interleaving needs a multiple of the stages, "
            f"for example {stages * (micro_batches // stages + 1)}"
        )
    groups = range(0, micro_batches, stages)
    forwards, backwards = (
        [
            Pass(kind, first + number, chunk)
            for first in groups
            for chunk in (range(chunks) if kind == FORWARD else reversed(range(chunks)))
            for number in range(stages)
        ]
        for kind in (FORWARD, BACKWARD)
    )
    # Until the first backward pass comes back to this stage its neighbours must stay fed: two passes for each stage
    # that follows, after all passes of the first group through all chunks but the last.
    ahead = 2 * (stages - stage - 1) + (chunks - 1) * stages
    return _in_turn(forwards, backwards, ahead)


Order = Callable[[int, int, int, int], list[Pass]]

SCHEDULES: dict[str, Order] = {"gpipe": gpipe, "1f1b": one_forward_one_backward, "interleaved": interleaved}
"""Every schedule by its name."""


def orders(schedule: str, stages: int, micro_batches: int, chunks: int = 1) -> list[list[Pass]]:
    """The passes of every stage, in order; raises NoSuchName for the schedule, ValueError for impossible numbers."""
    order = look_up(SCHEDULES, schedule, "schedule")
    if min(stages, micro_batches, chunks) < 1 or (chunks > 1 and schedule != "interleaved"):
        raise ValueError(
            f"{stages} stages, {micro_batches} micro-batches and {chunks} chunks a stage: at least 1 of each is "
            "needed, and only the interleaved schedule takes several chunks"
        )
    return [order(stages, micro_batches, stage, chunks) for stage in range(stages)]


def _in_turn(forwards: list[Pass], backwards: list[Pass], ahead: int) -> list[Pass]:
    """`ahead` forward passes, then forward and backward in turn, then the backward passes that are left."""
    ahead = min(ahead, len(forwards))
    order = forwards[:ahead]
    for place, each in enumerate(forwards[ahead:]):
        order += [each, backwards[place]]
    return order + backwards[len(forwards) - ahead :]


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
        """Each pass waits for the message that it needs and sends one on; a message says which pass it is for."""
        arrived: set[Pass] = set()
        done = []
        for each in passes[rank.index]:
            ahead = 1 if each.kind == FORWARD else -1
            sender, following = (_beside(each, rank, chunks, step) for step in (-ahead, ahead))
            # Messages of one stage come in the order in which it sends them, which need not be the order of need here.
            while sender and each not in arrived:
                kind, micro_batch, chunk = (await rank.receive(sender[0])).tolist()
                arrived.add(Pass(KINDS[kind], micro_batch, chunk))
            start = rank.now
            await rank.compute(seconds[each.kind])
            done.append(Work(rank.index, each.chunk, each.micro_batch, each.kind, start, rank.now))
            if following and following[0] == rank.index:
                arrived.add(following[1])
            elif following:
                await rank.send(following[0], np.array([KINDS.index(each.kind), *following[1][1:]]))
        return done

    world = World(stages, Network(latency=0.0, seconds_per_byte=0.0) if network is None else network)
    run = world.run(stage)
    return Timing(run.results, chunks, run.elapsed)


def _beside(each: Pass, rank: Rank, chunks: int, step: int) -> tuple[int, Pass] | None:
    """The stage and the same pass there, one piece of the model behind this stage's (`step` 1) or before it (-1).

    None where the model begins and where its loss is.
    """
    piece = each.chunk * rank.size + rank.index + step
    if not 0 <= piece < rank.size * chunks:
        return None
    return piece % rank.size, each._replace(chunk=piece // rank.size)


def bubble_fraction(stages: ArrayLike, micro_batches: ArrayLike, chunks: ArrayLike = 1) -> Numbers:
    """The share of the devices' time in which they wait: (p − 1) / (vm + p − 1).

    Huang et al. give (K−1)/(M+K−1); Narayanan et al. divide by the ideal time instead and give (p−1)/m, and
    (1/v)·(p−1)/m interleaved, which is the same bubble. float64, of the shape that the arguments have together.
    """
    p, m, v = _floats(stages, micro_batches, chunks)
    return ((p - 1) / (v * m + p - 1))[()]


def seconds(
    stages: ArrayLike,
    micro_batches: ArrayLike,
    forward_seconds: float,
    backward_seconds: float,
    chunks: ArrayLike = 1,
) -> Numbers:
    """The time of a batch: (m + (p − 1)/v)(t_f + t_b), for GPipe, 1F1B and interleaved 1F1B alike."""
    p, m, v = _floats(stages, micro_batches, chunks)
    return ((m + (p - 1) / v) * (forward_seconds + backward_seconds))[()]


def activations_held(schedule: str, stages: int, micro_batches: int, stage: int, chunks: int = 1) -> float:
    """The most micro-batches whose activations stage s holds at once, each counted as its share of the whole stage.

    gpipe: m. 1f1b: min(p − s, m). interleaved: min((2(p − s − 1) + (v − 1)p + 1) / v, m), for stage 0 the p + (p − 1)/v
    of Korthikanti et al. Raises NoSuchName for an unknown schedule.
    """
    require_name(SCHEDULES, schedule, "schedule")
    p, m, s, v = stages, micro_batches, stage, chunks
    if schedule == "gpipe":
        return float(m)
    if schedule == "1f1b":
        return float(min(p - s, m))
    return min((2 * (p - s - 1) + (v - 1) * p + 1) / v, m)


def _floats(*numbers: ArrayLike) -> list[np.ndarray]:
    """All as float64 of one shape."""
    return list(np.broadcast_arrays(*(np.asarray(each, np.float64) for each in numbers)))
