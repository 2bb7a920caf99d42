"""What every program of this folder shares: command line, first weights, batches, report.

NumPy alone, so that each framework starts from the same numbers. The network is `images ->
units (ReLU) -> 10 logits`; its weights are four arrays in Keras's layout: (784, units),
(units,), (units, 10), (10,), float32. The global batch is the same for any number of ranks, so
after the same steps the weights are too.
"""

import argparse
import json
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from distlab import data

import numpy as np
from numpy.typing import NDArray

Weights = Sequence[NDArray[np.float32]]
Batch = tuple[NDArray[np.float32], NDArray[np.int64]]

SEED = 15
MOMENTUM = 0.9
INPUTS = data.IMAGE_SIZE**2


def parser(description: str) -> argparse.ArgumentParser:
    """The options that all programs have."""
    arguments = argparse.ArgumentParser(description=description)
    arguments.add_argument("--dataset", choices=data.NAMES, default="digits")
    arguments.add_argument("--steps", type=int, default=20)
    arguments.add_argument("--batch", type=int, default=48, help="images of all in a step")
    arguments.add_argument("--units", type=int, default=64, help="of the hidden layer")
    arguments.add_argument("--learning-rate", type=float, default=0.05, help="of the batch")
    arguments.add_argument("--weights", type=Path, help=".npz file for the trained weights")
    arguments.add_argument("--result", type=Path, help="JSON file for what the last line says")
    return arguments


def first_weights(units: int) -> list[NDArray[np.float32]]:
    """Kernels as Keras draws them (Glorot and Bengio 2010, equation 16), biases of zero."""
    random, weights = np.random.default_rng(SEED), []
    for shape in ((INPUTS, units), (units, data.CLASSES)):
        limit = np.sqrt(6 / sum(shape))
        kernel = random.uniform(-limit, limit, shape).astype(np.float32)
        weights += [kernel, np.zeros(shape[1], np.float32)]
    return weights


class Batches:
    """The batches of one rank, images float32 (n, 784) and labels int64 (n,), and their times.

    Which images a step has depends on its number alone. Of each global batch, rank r of N
    takes every N-th image from the r-th on.
    """

    def __init__(
        self, options: argparse.Namespace, rank: int, ranks: int, steps_done: int = 0
    ) -> None:
        if options.batch % ranks:
            raise SystemExit(
                f"--batch {options.batch} cannot be split into {ranks} equal parts."
            )
        self.options, self.rank, self.ranks, self.steps_done = options, rank, ranks, steps_done
        self.step_seconds: list[float] = []
        print(f"rank {rank} of {ranks} on {os.uname().nodename}", flush=True)

    def __iter__(self) -> Iterator[Batch]:
        options, (images, labels) = self.options, data.load(self.options.dataset).train
        order = np.random.default_rng(SEED).permutation(len(labels))
        while self.steps_done < options.steps:
            first = self.steps_done * options.batch
            positions = np.arange(first + self.rank, first + options.batch, self.ranks)
            chosen = order[positions % len(order)]
            start = time.perf_counter()
            yield images[chosen].reshape(-1, INPUTS), labels[chosen]
            self.step_seconds.append(time.perf_counter() - start)
            self.steps_done += 1


def report(batches: Batches, launcher: str, loss: float, weights: Weights) -> None:
    """On rank 0, print a line about the run; write it and the weights where the options say.

    Called by all ranks, with the loss of the last step, the same on all.
    """
    if batches.rank != 0:
        return
    options, ranks = batches.options, batches.ranks
    norm = float(np.sqrt(sum(np.square(array, dtype=np.float64).sum() for array in weights)))
    # The first step also builds the graph and the connections.
    seconds = float(np.median(batches.step_seconds[1:]))
    rate = options.batch / seconds
    print(
        f"{launcher}: {ranks} rank{'s' * (ranks > 1)}, {batches.steps_done} steps, "
        f"last loss {loss:.4f}, norm of the weights {norm:.4f}, {rate:.0f} images/s",
        flush=True,
    )
    if options.weights:
        write(options.weights, weights)
    if options.result:
        result = {"ranks": ranks, "steps": batches.steps_done, "loss": loss}
        result |= {"step_seconds": seconds, "images_per_second": rate}
        options.result.write_text(json.dumps(result) + "\n")


def write(file: Path, weights: Weights) -> None:
    """Write weights as the arrays weight_0 to weight_3 of an .npz file."""
    with file.open("wb") as opened:  # under exactly this name
        np.savez(opened, **{f"weight_{index}": weight for index, weight in enumerate(weights)})


def read(file: Path) -> list[NDArray[np.float32]]:
    """The weights in such a file."""
    with np.load(file) as arrays:
        return [arrays[f"weight_{index}"] for index in range(len(arrays.files))]
