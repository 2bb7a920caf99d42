"""Train a small network on the virtual cluster: who waits, how stale, how fast?

    python simulated_training.py

Its time is computed. It needs NumPy and the virtual cluster, and starts no processes.
"""

from collections.abc import Callable
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
        images, labels = data.load(dataset).train
        images, self.labels = images[:1280].reshape(1280, 784), labels[:1280]
        self.images = images - images.mean(axis=0)

    def first_weights(self, seed: int) -> np.ndarray:
        """Random ones."""
        draw = np.random.default_rng(seed).normal
        kernels = draw(size=784 * HIDDEN) / 28, draw(size=HIDDEN * 10) / 4
        return np.concatenate(kernels).astype(np.float32)

    def forward(self, weights: np.ndarray, images: np.ndarray) -> tuple[np.ndarray, ...]:
        """Second kernel, outputs of the hidden layer, and probabilities of the ten classes."""
        kernel = weights[784 * HIDDEN :].reshape(HIDDEN, 10)
        hidden = np.maximum(images @ weights[: 784 * HIDDEN].reshape(784, HIDDEN), 0)
        exponentials = np.exp(hidden @ kernel)
        return kernel, hidden, exponentials / exponentials.sum(axis=1, keepdims=True)

    def loss(self, weights: np.ndarray) -> float:
        """The mean over all images."""
        _, _, probabilities = self.forward(weights, self.images)
        return -np.mean(np.log(probabilities[np.arange(1280), self.labels]))

    def gradient(self, weights: np.ndarray, number: int) -> np.ndarray:
        """The gradient of one batch of images."""
        index = (BATCH * number + np.arange(BATCH)) % 1280
        kernel, hidden, error = self.forward(weights, self.images[index])
        error[np.arange(BATCH), self.labels[index]] -= 1
        to_hidden = (error @ kernel.T) * (hidden > 0)
        parts = (self.images[index].T @ to_hidden, hidden.T @ error)
        return np.concatenate([part.ravel() for part in parts]) / BATCH


def served(
    cluster: World, weights: np.ndarray, gradient: Callable, steps: int, **how: object
) -> collectives.Training:
    """Asynchronous training with a parameter server: rank 0 serves, nobody waits."""
    program = partial(collectives.parameter_server, gradient=gradient, steps=steps, **how)
    return cluster.run(program, [weights] * cluster.size).results[0]


def asynchronous(
    model: Classifier, weights: np.ndarray, workers: int, rate: float, gradients: int
) -> np.ndarray:
    """The last weights of training with a parameter server."""

    def gradient_of(weights: np.ndarray, worker: int, step: int) -> np.ndarray:
        return model.gradient(weights, step * workers + worker - 1)

    steps, how = gradients // workers, {"learning_rate": rate, "seconds_per_gradient": SECONDS}
    return served(World(workers + 1), weights, gradient_of, steps, **how).weights


def synchronous(
    model: Classifier, weights: np.ndarray, workers: int, rate: float, gradients: int
) -> np.ndarray:
    """The last weights of training that adds one gradient of each worker per step."""
    for first in range(0, gradients, workers):
        numbers = range(first, first + workers)
        weights = weights - rate * sum(model.gradient(weights, number) for number in numbers)
    return weights


def losses(model: Classifier, rate: float, gradients: int = 320) -> dict[str, list[float]]:
    """The last losses of three ways to apply the same gradients, for three seeds."""
    ways = {
        "1 worker": (asynchronous, 1),
        "8 asynchronous": (asynchronous, WORKERS),
        "8 synchronous": (synchronous, WORKERS),
    }
    seeds = [model.first_weights(seed) for seed in range(3)]
    with np.errstate(all="ignore"):  # at a large rate the loss is no longer finite
        return {
            name: [model.loss(train(model, seed, workers, rate, gradients)) for seed in seeds]
            for name, (train, workers) in ways.items()
        }


def idle_gradient(weights: np.ndarray, worker: int, step: int) -> np.ndarray:
    """A gradient whose values do not matter."""
    return weights


def staleness(seconds: list[float], gradients: int) -> np.ndarray:
    """Worker and staleness of the first gradients of workers that need so many seconds."""
    cluster = World(1 + len(seconds), Network(1e-5, 1e-9))
    how = {"seconds_per_gradient": lambda worker, step: seconds[worker - 1]}
    updates = served(cluster, np.ones(1), idle_gradient, gradients, **how).updates[:gradients]
    return np.array([[update.worker - 1, update.staleness] for update in updates]).T


async def all_reduced(rank: Rank, weights: np.ndarray, steps: int) -> None:
    """Synchronous training, as far as the clock knows: compute, then add up by a ring."""
    for _ in range(steps):
        await rank.compute(SECONDS)
        await collectives.ring_all_reduce(rank, weights)


def times_longer(network: Network, slower: float, steps: int = 24) -> float:
    """The synchronous way's time for the same number of gradients, by the asynchronous way's.

    slower: by this factor one of the eight workers is slower.
    """
    weights = np.zeros(784 * HIDDEN + HIDDEN * 10, np.float32)
    ring = World(WORKERS, network, {0: 1 / slower})
    by_ring = ring.run(partial(all_reduced, steps=steps), [weights] * WORKERS)
    cluster = World(WORKERS + 1, network, {1: 1 / slower})
    how = {"learning_rate": 0.0, "seconds_per_gradient": SECONDS}
    by_server = served(cluster, weights, idle_gradient, 2 * steps, **how)
    return by_ring.elapsed / by_server.updates[WORKERS * steps - 1].time


def mean_step(backups: int, steps: int = 20_000) -> float:
    """Mean seconds of a step that takes the first 8 of 8 + `backups` gradients.

    One gradient in twenty takes ten times as long.
    """
    is_slow = np.random.default_rng(8).random((steps, WORKERS + backups)) < 0.05
    return np.sort(np.where(is_slow, 10 * SECONDS, SECONDS), axis=1)[:, WORKERS - 1].mean()


if __name__ == "__main__":
    print(losses(Classifier("digits"), rate=0.05))
