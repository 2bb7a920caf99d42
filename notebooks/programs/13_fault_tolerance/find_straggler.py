"""Find the slow rank of a synchronous job: each times its computing and its waiting.

On a laptop, three processes over MPI; under Slurm in a batch script or after `salloc --nodes=2
--ntasks-per-node=4`:

    mpirun -np 3 python find_straggler.py --result result.json
    srun --mpi=pmix python find_straggler.py --result result.json

A linear classifier is trained three times from the same start on the same global batches: with
even shares of each batch on ranks of one speed (`even`); with `--slow-rank` so many times
slower (`slow`); and with shares in proportion to the speeds that were measured then (`shared
by speed`). To see the same on any machine, computing is mostly a pause for each image. Rank 0
writes for each of the three the shares, the median seconds that each rank computes and waits
in a step, those of a step, and how far the weights are from those of `even`.
"""

import argparse
import json
import time
from pathlib import Path

from distlab import data

import numpy as np
from mpi4py import MPI

BATCH, STEPS, RATE = 64, 15, 0.1  # images of all ranks in a step


def train(dataset: str, shares: list[int], pause: float) -> tuple[np.ndarray, np.ndarray]:
    """The weights, and this rank's seconds of computing and waiting: float64 (steps, 2)."""
    world = MPI.COMM_WORLD
    images, labels = (part[: STEPS * BATCH] for part in data.load(dataset).train)
    images = images.reshape(len(images), -1)
    count, begin = shares[world.rank], sum(shares[: world.rank])
    weights, seconds = np.zeros((images.shape[1], 10)), np.zeros((STEPS, 2))
    world.Barrier()
    for step in range(STEPS):
        mine = (np.arange(begin, begin + count) + step * BATCH) % len(images)
        gradient, *seconds[step] = measured_step(weights, images[mine], labels[mine], pause)
        weights -= RATE * gradient
    return weights, seconds


def measured_step(
    weights: np.ndarray, images: np.ndarray, labels: np.ndarray, pause: float
) -> tuple[np.ndarray, float, float]:
    """The gradient of all ranks, and this rank's seconds of computing and of waiting."""
    start = time.perf_counter()
    gradient = gradient_of(weights, images, labels)
    time.sleep(len(images) * pause)
    computed = time.perf_counter()
    MPI.COMM_WORLD.Allreduce(MPI.IN_PLACE, gradient, MPI.SUM)  # waits for the slowest rank
    return gradient, computed - start, time.perf_counter() - computed


def gradient_of(weights: np.ndarray, images: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """This share of the gradient of the mean cross-entropy over the global batch."""
    scores = np.exp(images @ weights)
    return images.T @ (scores / scores.sum(axis=1, keepdims=True) - np.eye(10)[labels]) / BATCH


def shares_by(speeds: list[float]) -> list[int]:
    """How many images each rank gets: each goes to the rank that would be done first."""
    shares = np.zeros(len(speeds), int)
    for _ in range(BATCH):
        shares[np.argmin((shares + 1) / speeds)] += 1
    return shares.tolist()


def main() -> None:
    """Train three times and report."""
    parser = argparse.ArgumentParser(description="Find the slow rank of a synchronous job.")
    parser.add_argument("--dataset", default="digits", choices=data.NAMES)
    parser.add_argument("--pause", type=float, default=1e-3, help="seconds for an image")
    parser.add_argument("--slow-rank", type=int, default=1)
    parser.add_argument("--times-slower", type=float, default=4.0)
    parser.add_argument("--result", type=Path, help="JSON file that rank 0 writes")
    options, world = parser.parse_args(), MPI.COMM_WORLD
    slower = options.times_slower if world.rank == options.slow_rank else 1.0
    shares, reference = shares_by([1.0] * world.size), None
    trainings = {}
    for name, factor in (("even", 1.0), ("slow", slower), ("shared by speed", slower)):
        weights, seconds = train(options.dataset, shares, options.pause * factor)
        reference = weights if reference is None else reference
        medians = world.allgather(np.median(seconds, axis=0))
        computing, waiting = np.transpose(medians).tolist()
        trainings[name] = {
            "shares": shares,
            "computing": computing,
            "waiting": waiting,
            "step": float(np.median(seconds.sum(axis=1))),
            "difference": float(np.abs(weights - reference).max()),
        }
        if name == "slow":
            shares = shares_by(np.divide(shares, computing))
    if world.rank == 0:
        for name, run in trainings.items():
            print(f"{name}: {1e3 * run['step']:.0f} ms a step, shares {run['shares']}")
        if options.result:
            options.result.write_text(json.dumps(trainings, indent=1) + "\n")


if __name__ == "__main__":
    main()
