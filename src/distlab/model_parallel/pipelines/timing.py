"""A schedule run on the virtual cluster: when each stage does what, how long it waits, how much it holds."""

from dataclasses import dataclass

from distlab.model_parallel.pipelines.chunks import Timed
from distlab.model_parallel.pipelines.orders import FORWARD, orders
from distlab.model_parallel.pipelines.program import Work, pipeline
from distlab.simulate import Network, World


@dataclass(frozen=True)
class Timing:
    """What a schedule came to.

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
        held, most = 0, 0
        for work in self.works[stage]:
            held += 1 if work.kind == FORWARD else -1
            most = max(most, held)
        return most / self.chunks


def simulate(
    schedule: str,
    stages: int,
    micro_batches: int,
    chunks: int = 1,
    forward_seconds: float = 1.0,
    backward_seconds: float = 2.0,
    network: Network | None = None,
    message_bytes: int = 0,
) -> Timing:
    """Run a schedule with chunks that only take time; by default messages take none.

    forward_seconds, backward_seconds: of one micro-batch on a whole stage; each of its chunks takes an equal part.
    Raises ValueError as `orders` does.
    """
    found = orders(schedule, stages, micro_batches, chunks)
    parts = [Timed(forward_seconds / chunks, backward_seconds / chunks, message_bytes) for _ in range(chunks)]
    world = World(stages, Network(latency=0.0, seconds_per_byte=0.0) if network is None else network)
    run = world.run(lambda rank: pipeline(rank, found, parts))
    return Timing(run.results, chunks, run.elapsed)
