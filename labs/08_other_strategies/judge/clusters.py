"""Measured clusters of lab 08: the rates of three ways to train in them, and the best way that each allows."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

SYNCHRONOUS, BACKUP, ASYNCHRONOUS = WAYS = ("synchronous", "backup workers", "asynchronous")
STEPS = 300


class MeasuredCluster(NamedTuple):
    """What is known of a cluster.

    seconds: computing times, shape (steps, workers).  all_reduce: seconds of an all-reduce.  server: seconds in which
    the parameter server receives, applies and answers one gradient.  backups: gradients that a step with backup workers
    drops.  allowed: the largest mean staleness that the learning rate tolerates.
    """

    seconds: NDArray[np.float64]
    all_reduce: float
    server: float
    backups: int
    allowed: float

    @property
    def workers(self) -> int:
        """That compute gradients."""
        return int(self.seconds.shape[1])

    @property
    def dropped(self) -> float:
        """The largest share of the steps in which one worker's gradient is dropped."""
        last = np.argsort(self.seconds, axis=1)[:, self.workers - self.backups :]
        return float(np.bincount(last.ravel(), minlength=self.workers).max() / len(self.seconds))


EXAMPLE = MeasuredCluster(np.array([[0.1, 0.2, 0.4], [0.3, 0.12, 0.15]]), 0.06, 0.02, backups=1, allowed=3.0)


def rates(cluster: MeasuredCluster) -> dict[str, float]:
    """Gradients per second that change the weights, by way."""
    seconds, all_reduce, server, backups, _ = cluster
    workers = cluster.workers
    ends = np.sort(seconds, axis=1)
    return {
        SYNCHRONOUS: workers / float(np.mean(ends[:, -1]) + all_reduce),
        BACKUP: (workers - backups) / float(np.mean(ends[:, workers - backups - 1]) + all_reduce),
        ASYNCHRONOUS: min(float(np.sum(1 / seconds.mean(axis=0))), 1 / server),
    }


def excluded(cluster: MeasuredCluster) -> set[str]:
    """The ways that the cluster does not allow."""
    ways = set()
    if cluster.workers - 1 > cluster.allowed:
        ways.add(ASYNCHRONOUS)
    if cluster.dropped > 0.5:
        ways.add(BACKUP)
    return ways


def choice(cluster: MeasuredCluster) -> str:
    """The fastest way among those that the cluster allows."""
    return max(set(WAYS) - excluded(cluster), key=rates(cluster).__getitem__)


def drawn_clusters(generator: np.random.Generator) -> dict[str, MeasuredCluster]:
    """Five clusters by letter, with one reason each for the right choice, and far from a tie.

    Each rule is met on its boundary: in A one worker is dropped in exactly half of the steps, in B the mean staleness
    is exactly the largest that is allowed. In A that worker is by far the slowest on average. In E the worker that is
    always dropped is never the slowest in a step, and fast on average. In A every way is allowed, and backup workers
    are the best, asynchronous training the second best. In D asynchronous training is the best and out, and backup
    workers are the second best.
    """
    workers = int(generator.integers(7, 11))
    base = float(generator.uniform(0.08, 0.12))
    even = base * generator.uniform(0.85, 1.15, (5, STEPS, workers))
    hiccups = np.where(generator.random((STEPS, workers)) < 0.06, 10.0, 1.0)
    slow = np.ones(workers)
    slow[generator.integers(workers)] = float(generator.uniform(4, 5))
    fast_network, allowed, too_few = 0.02 * base, workers + 5.0, workers - 2.0
    return {
        "A": MeasuredCluster(
            even[0] * _two_hiccups_in_each_step(generator, workers), fast_network, 0.02 * base, 2, allowed
        ),
        "B": MeasuredCluster(even[1] * slow, fast_network, 0.02 * base, 1, workers - 1.0),
        "C": MeasuredCluster(even[2], 0.1 * base, 0.4 * base, 1, allowed),
        "D": MeasuredCluster(even[3] * hiccups, fast_network, 0.02 * base, 1, too_few),
        "E": MeasuredCluster(even[4] * _always_second_last(generator, workers), fast_network, 0.02 * base, 2, too_few),
    }


def with_a_busy_server(generator: np.random.Generator) -> MeasuredCluster:
    """The workers send more than the server can apply, and what it applies is still more than in a synchronous way."""
    workers, base = int(generator.integers(7, 11)), float(generator.uniform(0.08, 0.12))
    even = base * generator.uniform(0.85, 1.15, (STEPS, workers))
    return MeasuredCluster(even, 1.5 * base, 0.2 * base, 1, workers + 5.0)


def _two_hiccups_in_each_step(generator: np.random.Generator, workers: int) -> NDArray[np.float64]:
    """Factors: of the two workers that hiccup in a step, one is the same in exactly half of the steps."""
    often, *others = generator.permutation(workers).tolist()
    factors = np.ones((STEPS, workers))
    for place, step in enumerate(generator.permutation(STEPS)):
        pair = generator.choice(others, 2, replace=False)
        factors[step, [often if place % 2 else pair[0], pair[1]]] = 10.0
    return factors


def _always_second_last(generator: np.random.Generator, workers: int) -> NDArray[np.float64]:
    """Factors: one worker is always a little slower than the others, one of which hiccups in each step."""
    second, *others = generator.permutation(workers).tolist()
    factors = np.ones((STEPS, workers))
    factors[:, second] = 1.5
    factors[np.arange(STEPS), generator.choice(others, STEPS)] = 10.0
    return factors
