"""Data-parallel training with ZeRO's stages 0 to 3: the same weights, less memory on each rank.

On a laptop, four ranks over MPI, by hand and with the course's launcher:

    mpirun -np 4 python shard_optimizer.py --result result.json
    distlab launch --with mpirun --workers 4 shard_optimizer.py -- --result result.json

Under Slurm, in a batch script or after `salloc --nodes=2 --ntasks-per-node=4`:

    srun --mpi=pmix python shard_optimizer.py --result result.json

The program of every rank is `distlab.model_parallel.sharded_optimizers.train`, the one that runs on the virtual
cluster; here its messages are MPI's. Rank 0 trains the same network alone on the whole batches, and writes for each
stage how far the weights differ, the bytes of parameters, gradients and optimizer states on every rank, and the bytes
it sent.
"""

import argparse
import json
from pathlib import Path

from distlab import checks, data, model_parallel
from distlab.simulate import run_over_mpi

import numpy as np
from mpi4py import MPI

zero, BATCH, UNITS = model_parallel.sharded_optimizers, 64, 64


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Train with sharded optimizer states and compare with one process.")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--dataset", choices=data.NAMES, default="digits")
    parser.add_argument("--result", type=Path, help="JSON file that rank 0 writes")
    return parser.parse_args()


def batches(options: argparse.Namespace) -> list[tuple[np.ndarray, np.ndarray]]:
    """Images (batch, 784), float64, and labels of every step."""
    images, labels = data.load(options.dataset).train
    taken = np.arange(options.steps * BATCH).reshape(-1, BATCH) % len(images)
    return [(images[part].reshape(len(part), -1).astype(np.float64), labels[part]) for part in taken]


def main() -> None:
    """Train in every stage; let rank 0 compare and write."""
    options, world = parse(), MPI.COMM_WORLD
    layers = model_parallel.layered_network.random_layers((28 * 28, UNITS, data.CLASSES), seed=12)
    todo = batches(options)
    alone = zero.train_serially(layers, todo) if world.rank == 0 else None
    found = {}
    for stage in zero.STAGES:
        run = run_over_mpi(lambda rank, stage=stage: zero.train(rank, layers, todo, stage))
        results, sent = world.gather(run.result), world.gather(run.bytes_sent)
        if world.rank == 0:
            weights = zero.whole_layers(results, [layer.shape for layer in layers], stage)
            far = checks.largest_difference(weights, alone)
            held = [result.bytes_held._asdict() for result in results]
            found[stage] = {"difference": far, "bytes_held": held, "bytes_sent": sent}
            print(f"ZeRO {stage}: {sum(held[0].values()):,} bytes of states, weights differ by {far:.1e}", flush=True)
    if world.rank == 0 and options.result:
        parameters = sum(layer.size for layer in layers)
        moved = checks.largest_difference(alone, layers)
        options.result.write_text(json.dumps({"parameters": parameters, "moved": moved, "stages": found}) + "\n")


if __name__ == "__main__":
    main()
