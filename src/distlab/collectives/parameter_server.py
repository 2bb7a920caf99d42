"""A parameter server with asynchronous workers: nobody waits for the others, so gradients are stale."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from distlab.simulate.rank import Rank

SERVER = 0

# gradient(weights, worker, step): an array of the weights' shape.
Gradient = Callable[[np.ndarray, int, int], np.ndarray]


@dataclass(frozen=True)
class Update:
    """One gradient that the server applied.

    worker: whose it is.  time: when it was applied, in seconds.  staleness: how many other updates the server had
    applied since it gave this worker the weights that the gradient was computed from; 0 is a gradient of the newest.
    """

    worker: int
    staleness: int
    time: float


@dataclass
class Training:
    """What the server has in the end: the weights, and every update in the order in which it applied them."""

    weights: np.ndarray
    updates: list[Update] = field(default_factory=list)

    @property
    def staleness(self) -> list[int]:
        """The staleness of each update, in order."""
        return [update.staleness for update in self.updates]


async def parameter_server(
    rank: Rank,
    weights: np.ndarray,
    gradient: Gradient,
    steps: int,
    learning_rate: float = 0.1,
    seconds_per_gradient: float | Callable[[int, int], float] = 1e-3,
) -> Training | None:
    """Train with rank 0 as the server and every other rank as a worker.

    A worker gets the weights, computes one gradient with them and sends it, `steps` times. The server applies
    `weights −= learning_rate·gradient` as the gradients arrive, and answers the sender at once with the new weights.

    weights: floating point, any shape; on the server the initial weights (left as they are), not looked at on workers.
    seconds_per_gradient: the computing time, or a function of worker and step that gives it; for a worker that is
    always slow, give the world another compute speed.
    Returns the `Training` on the server and None on the workers.
    Source: Li et al., OSDI 2014 (asynchronous, one server); p − 1 equally fast workers have a staleness of p − 2.
    """
    if rank.index == SERVER:
        return await _serve(rank, weights.copy(), steps, learning_rate)
    for step in range(steps):
        weights = await rank.receive(SERVER)
        seconds = seconds_per_gradient
        await rank.compute(seconds(rank.index, step) if callable(seconds) else seconds)
        await rank.send(SERVER, gradient(weights, rank.index, step))
    return None


async def _serve(rank: Rank, weights: np.ndarray, steps: int, rate: float) -> Training:
    training = Training(weights)
    workers = range(1, rank.size)
    gradients_to_come = dict.fromkeys(workers, steps)
    updates_when_given = dict.fromkeys(workers, 0)
    if steps > 0:
        for worker in workers:
            await rank.send(worker, weights)

    while any(gradients_to_come.values()):
        worker, gradient = await rank.receive_any()
        await rank.reduce(weights, (-rate * gradient).astype(weights.dtype))
        staleness = len(training.updates) - updates_when_given[worker]
        training.updates.append(Update(worker, staleness, rank.now))
        updates_when_given[worker] = len(training.updates)
        gradients_to_come[worker] -= 1
        if gradients_to_come[worker] > 0:
            await rank.send(worker, weights)
    return training
