"""What every program of this folder shares: the command line, the first weights, the batches and the report.

NumPy alone, so that each framework starts from the same numbers. The network is `images -> units (ReLU) -> 10 logits`;
its weights are four arrays in Keras's layout: (784, units), (units,), (units, 10), (10,), float32. The global batch is
the same for any number of ranks, so after the same steps the weights are too.
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
    arguments.add_argument("--batch", type=int, default=48, help="images of all ranks in a step (default: 48)")
    arguments.add_argument("--units", type=int, default=64, help="of the hidden layer (default: 64)")
    arguments.add_argument("--learning-rate", type=float, default=0.05, help="for the whole batch")
    arguments.add_argument("--log-every", type=int, help="rank 0 prints a line after so many steps")
    arguments.add_argument("--weights", type=Path, help=".npz file for the trained weights")
    arguments.add_argument("--result", type=Path, help="JSON file for what the last line says")
    return arguments


def first_weights(units: int) -> list[NDArray[np.float32]]:
    """Kernels as Keras draws them (uniform, Glorot and Bengio 2010, equation 16), biases zero."""
    random = np.random.default_rng(SEED)
    weights = []
    for shape in ((INPUTS, units), (units, data.CLASSES)):
        limit = np.sqrt(6 / sum(shape))
        weights += [random.uniform(-limit, limit, shape).astype(np.float32), np.zeros(shape[1], np.float32)]
    return weights


class Batches:
    """The batches of one rank, images float32 (n, 784) with labels int64 (n,), and how long each step took.

    Which images a step has depends on its number alone. Of each global batch, rank r of N takes every N-th image from
    the r-th on.
    """

    def __init__(self, options: argparse.Namespace, rank: int, ranks: int, steps_done: int = 0) -> None:
        if options.batch % ranks:
            raise SystemExit(f"A batch of {options.batch} cannot be split into {ranks} equal parts: change --batch.")
        self.options, self.rank, self.ranks, self.steps_done = options, rank, ranks, steps_done
        self.step_seconds: list[float] = []
        print(f"rank {rank} of {ranks} on {os.uname().nodename}", flush=True)

    def __iter__(self) -> Iterator[Batch]:
        images, labels = data.load(self.options.dataset).train
        order = np.random.default_rng(SEED).permutation(len(labels))
        while self.steps_done < self.options.steps:
            first = self.steps_done * self.options.batch
            positions = np.arange(first + self.rank, first + self.options.batch, self.ranks) % len(order)
            chosen = order[positions]
            start = time.perf_counter()
            yield images[chosen].reshape(-1, INPUTS), labels[chosen]
            self.step_seconds.append(time.perf_counter() - start)
            self.steps_done += 1
            if self.rank == 0 and self.options.log_every and self.steps_done % self.options.log_every == 0:
                print(f"step {self.steps_done} of {self.options.steps}", flush=True)


def report(batches: Batches, launcher: str, loss: float, weights: Weights) -> None:
    """On rank 0, print one line about the run, and write it and the weights where the options say.

    Called by all ranks, with the loss of the last step, the same on all.
    """
    if batches.rank != 0:
        return
    options = batches.options
    norm = float(np.sqrt(sum(np.square(array, dtype=np.float64).sum() for array in weights)))
    # The first step also builds the graph and the connections.
    seconds = float(np.median(batches.step_seconds[1:] or batches.step_seconds or [np.nan]))
    result = {
        "launcher": launcher,
        "dataset": options.dataset,
        "batch": options.batch,
        "units": options.units,
        "ranks": batches.ranks,
        "steps": batches.steps_done,
        "loss": loss,
        "norm": norm,
        "step_seconds": seconds,
        "images_per_second": options.batch / seconds,
    }
    print(
        f"{launcher}: {batches.ranks} rank{'s' * (batches.ranks > 1)}, {batches.steps_done} steps, "
        f"last loss {loss:.4f}, norm of the weights {norm:.4f}, {options.batch / seconds:.0f} images/s",
        flush=True,
    )
    if options.weights:
        write(options.weights, weights)
    if options.result:
        unknown = {} if batches.step_seconds else dict.fromkeys(("loss", "step_seconds", "images_per_second"))
        options.result.write_text(json.dumps(result | unknown) + "\n")


def write(file: Path, weights: Weights) -> None:
    """Write weights as the arrays weight_0 to weight_3 of an .npz file."""
    with file.open("wb") as opened:  # under exactly this name
        np.savez(opened, **{f"weight_{index}": weight for index, weight in enumerate(weights)})


def read(file: Path) -> list[NDArray[np.float32]]:
    """The weights in such a file."""
    with np.load(file) as arrays:
        return [arrays[f"weight_{index}"] for index in range(len(arrays.files))]
