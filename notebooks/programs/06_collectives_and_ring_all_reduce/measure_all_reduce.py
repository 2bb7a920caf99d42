"""Measure an all-reduce by message size, over real processes, and check every sum.

On a laptop, two processes over MPI, both ways one after the other; on two hosts; under Slurm
in a batch script or after `salloc --nodes=2 --ntasks-per-node=4`:

    mpirun -np 2 python measure_all_reduce.py --result mpi.json
    mpirun -np 8 -H host0:4,host1:4 python measure_all_reduce.py --result mpi.json
    srun --mpi=pmix python measure_all_reduce.py --result mpi.json

| way | what is measured |
|---|---|
| mpi | `MPI_Allreduce` through mpi4py; the MPI library chooses the algorithm |
| ring | the course's `ring_all_reduce`, its messages sent by mpi4py |

For each size all ranks meet at a barrier before each all-reduce; the first few are a warm-up
and do not count; the result is the median of the others, as rank 0 saw them. Rank 0 writes the
result file; a wrong sum ends the program with status 1.
"""

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np
from mpi4py import MPI

SIZES = [4**power for power in range(2, 12)]
"""16 bytes to 4 MiB."""
REPEATS, WARM_UP = 15, 3
WORLD = MPI.COMM_WORLD


def mpi(array: np.ndarray) -> tuple[np.ndarray, float]:
    """MPI's own all-reduce."""
    total = array.copy()  # not empty_like: its memory is in place before the clock starts
    WORLD.Barrier()
    start = time.perf_counter()
    WORLD.Allreduce(array, total, MPI.SUM)
    return total, time.perf_counter() - start


def ring(array: np.ndarray) -> tuple[np.ndarray, float]:
    """The ring of the course; `run_over_mpi` has a barrier before the clock starts."""
    from distlab.collectives import ring_all_reduce
    from distlab.simulate import run_over_mpi

    run = run_over_mpi(ring_all_reduce, array)
    return run.result, run.elapsed


WAYS = {"mpi": mpi, "ring": ring}


def measure(way: str, size: int) -> float:
    """The median seconds of all-reduces of `size` bytes; a wrong sum ends the program."""
    position = np.arange(size // 4, dtype=np.float32) % 100
    expected, seconds = position * WORLD.size + sum(range(WORLD.size)), []
    for _ in range(WARM_UP + REPEATS):
        total, elapsed = WAYS[way](position + np.float32(WORLD.rank))
        if not np.array_equal(total, expected):
            sys.exit(f"rank {WORLD.rank}: a sum was wrong")
        seconds.append(elapsed)
    return float(np.median(seconds[WARM_UP:]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Measure an all-reduce by message size.")
    parser.add_argument("--result", type=Path, help="JSON file that rank 0 writes")
    file = parser.parse_args().result
    seconds = {way: [measure(way, size) for size in SIZES] for way in WAYS}
    if WORLD.rank == 0:
        print(f"{WORLD.size} ranks, all sums are right", flush=True)
        if file:
            file.write_text(json.dumps({"array_bytes": SIZES, "seconds": seconds}) + "\n")
