"""Train a small network on the virtual cluster, whose time is computed: who waits, how stale, how fast.

    python simulated_training.py

It needs NumPy and the course's virtual cluster; it starts no processes.
"""

from functools import partial

from distlab import collectives, data
from distlab.simulate import Network, Rank, World

import numpy as np

WORKERS, BATCH, HIDDEN, SECONDS = 8, 32, 16, 0.01
NETWORKS = {
    "100 Gbit/s": Network(2e-6, 8e-11),
    "1 Gbit/s": Network(5e-5, 8e-9),
    "100 Mbit/s": Network(1e-4, 8e-8),
}


class Classifier:
    """Two layers in NumPy; all weights are one vector."""

    def __init__(self, dataset: str) -> None:
        """Take 1,280 images."""
        images, labels = data.load(dataset).train
        self.images, self.labels = images[:1280].reshape(1280, 784), labels[:1280]
        self.images = self.images - self.images.mean(axis=0)

    def first_weights(self, seed: int) -> np.ndarray:
        """Random ones."""
        generator = np.random.default_rng(seed)
        kernels = [generator.normal(size=784 * HIDDEN) / 28, generator.normal(size=HIDDEN * 10) / 4]
        return np.concatenate(kernels).astype(np.float32)

    def forward(self, weights: np.ndarray, images: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The second kernel, the hidden layer's outputs, and the probabilities of the ten classes."""
        kernel = weights[784 * HIDDEN :].reshape(HIDDEN, 10)
        hidden = np.maximum(images @ weights[: 784 * HIDDEN].reshape(784, HIDDEN), 0)
        exponentials = np.exp(hidden @ kernel)
        return kernel, hidden, exponentials / exponentials.sum(axis=1, keepdims=True)

    def loss(self, weights: np.ndarray) -> float:
        """The mean over all images."""
        return -np.mean(np.log(self.forward(weights, self.images)[2][np.arange(1280), self.labels]))

    def gradient(self, weights: np.ndarray, number: int) -> np.ndarray:
        """The gradient of one batch of images."""
        index = (BATCH * number + np.arange(BATCH)) % 1280
        kernel, hidden, error = self.forward(weights, self.images[index])
        error[np.arange(BATCH), self.labels[index]] -= 1
        to_hidden = (error @ kernel.T) * (hidden > 0)
        parts = (self.images[index].T @ to_hidden, hidden.T @ error)
        return np.concatenate([part.ravel() for part in parts]) / BATCH


def asynchronous(
    model: Classifier, weights: np.ndarray, workers: int, rate: float, gradients: int
) -> collectives.Training:
    """Train with a parameter server on the virtual cluster: rank 0 serves, nobody waits."""

    def gradient_of(weights: np.ndarray, worker: int, step: int) -> np.ndarray:
        return model.gradient(weights, step * workers + worker - 1)

    cluster = World(workers + 1)
    times = {"steps": gradients // workers, "seconds_per_gradient": SECONDS}
    program = partial(collectives.parameter_server, gradient=gradient_of, learning_rate=rate, **times)
    return cluster.run(program, [weights] * cluster.size).results[0]


def synchronous(model: Classifier, weights: np.ndarray, workers: int, rate: float, gradients: int) -> np.ndarray:
    """The last weights of training that adds one gradient of each worker per step."""
    for step in range(gradients // workers):
        weights = weights - rate * sum(model.gradient(weights, workers * step + rank) for rank in range(workers))
    return weights


def losses(model: Classifier, rate: float, gradients: int = 320) -> dict[str, list[float]]:
    """The last losses of three ways to apply the same gradients, for three seeds."""
    with np.errstate(all="ignore"):  # at a large rate the loss is no longer finite
        runs = []
        for first in map(model.first_weights, range(3)):
            one, eight = (asynchronous(model, first, workers, rate, gradients).weights for workers in (1, WORKERS))
            runs.append(
                [model.loss(last) for last in (one, eight, synchronous(model, first, WORKERS, rate, gradients))]
            )
    return dict(zip(("1 worker", "8 asynchronous", "8 synchronous"), np.transpose(runs).tolist(), strict=True))


def staleness(seconds: list[float], gradients: int) -> np.ndarray:
    """Worker and staleness of the first gradients of workers that need so many seconds for each."""
    server = partial(collectives.parameter_server, gradient=lambda weights, worker, step: weights, steps=gradients)
    program = partial(server, seconds_per_gradient=lambda worker, step: seconds[worker - 1])
    cluster = World(1 + len(seconds), Network(1e-5, 1e-9))
    updates = cluster.run(program, [np.ones(1)] * cluster.size).results[0].updates[:gradients]
    return np.array([[update.worker - 1, update.staleness] for update in updates]).T


async def all_reduced(rank: Rank, weights: np.ndarray, steps: int) -> None:
    """Synchronous training as far as the clock is concerned: compute, then add up by a ring."""
    for _ in range(steps):
        await rank.compute(SECONDS)
        await collectives.ring_all_reduce(rank, weights)


def times_longer(network: Network, slower: float, steps: int = 24) -> float:
    """The time that the synchronous way needs for the same number of gradients, divided by the asynchronous way's.

    slower: by this factor one of the eight workers is slower.
    """
    weights = np.zeros(784 * HIDDEN + HIDDEN * 10, np.float32)
    ring = World(WORKERS, network, {0: 1 / slower}).run(partial(all_reduced, steps=steps), [weights] * WORKERS)
    server = partial(collectives.parameter_server, gradient=lambda weights, worker, step: weights, steps=2 * steps)
    program = partial(server, learning_rate=0.0, seconds_per_gradient=SECONDS)
    served = World(WORKERS + 1, network, {1: 1 / slower}).run(program, [weights] * (WORKERS + 1)).results[0]
    return ring.elapsed / served.updates[WORKERS * steps - 1].time


def mean_step(backups: int, steps: int = 20_000) -> float:
    """Mean seconds of a step of the first 8 of 8 + `backups` gradients; one in twenty takes ten times as long."""
    is_slow = np.random.default_rng(8).random((steps, WORKERS + backups)) < 0.05
    return np.sort(np.where(is_slow, 10 * SECONDS, SECONDS), axis=1)[:, WORKERS - 1].mean()


if __name__ == "__main__":
    print(losses(Classifier("digits"), rate=0.05))
