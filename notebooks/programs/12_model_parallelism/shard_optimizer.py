"""Data-parallel training with ZeRO's stages 0 to 3: the same weights, less memory on a rank.

On a laptop, four ranks over MPI; under Slurm in a batch script or after `salloc --nodes=2
--ntasks-per-node=4`:

    mpirun -np 4 python shard_optimizer.py --result result.json
    srun --mpi=pmix python shard_optimizer.py --result result.json

The program of every rank is `distlab.model_parallel.sharded_optimizers.train`, the one that
runs on the virtual cluster; here its messages are MPI's. Rank 0 trains the same network alone
on the whole batches, and writes for each stage how far the weights differ, the bytes of
parameters, gradients and optimizer states on every rank, and the bytes it sent.
"""

import argparse
import json
from pathlib import Path

from distlab import checks, data, model_parallel
from distlab.model_parallel.layered_network import random_layers
from distlab.simulate import run_over_mpi

import numpy as np
from mpi4py import MPI

zero, BATCH, UNITS, STEPS = model_parallel.sharded_optimizers, 64, 64, 10


def batches(dataset: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """Images (batch, 784), float64, and labels of every step."""
    images, labels = data.load(dataset).train
    images = images.reshape(len(images), -1).astype(np.float64)
    taken = np.arange(STEPS * BATCH).reshape(-1, BATCH) % len(images)
    return [(images[part], labels[part]) for part in taken]


def main() -> None:
    """Train in every stage; let rank 0 compare and write."""
    parser = argparse.ArgumentParser(description="Train with sharded optimizer states.")
    parser.add_argument("--dataset", choices=data.NAMES, default="digits")
    parser.add_argument("--result", type=Path, help="JSON file that rank 0 writes")
    options, world = parser.parse_args(), MPI.COMM_WORLD
    sizes = (28 * 28, UNITS, data.CLASSES)
    layers, todo = random_layers(sizes, seed=12), batches(options.dataset)
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
            states = f"{sum(held[0].values()):,} bytes of states"
            print(f"ZeRO {stage}: {states}, weights differ by {far:.1e}", flush=True)
    if world.rank == 0 and options.result:
        parameters = sum(layer.size for layer in layers)
        result = {"parameters": parameters, "stages": found}
        options.result.write_text(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
