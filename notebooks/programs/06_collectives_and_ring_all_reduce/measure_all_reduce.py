"""Measure an all-reduce by message size, over real processes, and check every sum.

On a laptop, two processes over MPI, both ways one after the other:

    mpirun -np 2 python measure_all_reduce.py --modes mpi ring --result mpi.json

On two hosts:

    mpirun -np 8 -H host0:4,host1:4 python measure_all_reduce.py --result mpi.json

Under Slurm, in a batch script or after `salloc --nodes=2 --ntasks-per-node=4`:

    srun --mpi=pmix python measure_all_reduce.py --modes mpi ring --result mpi.json

| mode | what is measured |
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
from collections.abc import Callable
from pathlib import Path

import numpy as np
from mpi4py import MPI

SIZES = [4**power for power in range(2, 12)]
"""16 bytes to 4 MiB."""
WORLD = MPI.COMM_WORLD
AllReduce = Callable[[np.ndarray], tuple[np.ndarray, float]]
"""From this rank's array to the sum, and the seconds that it took after a barrier."""


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


MODES: dict[str, AllReduce] = {"mpi": mpi, "ring": ring}


def measure(reduce: AllReduce, size: int, repeats: int, warm_up: int) -> tuple[float, bool]:
    """The median of `repeats` all-reduces of `size` bytes, and whether every sum was right."""
    position = np.arange(size // 4, dtype=np.float32) % 100
    expected = position * WORLD.size + sum(range(WORLD.size))
    seconds, is_right = [], True
    for _ in range(warm_up + repeats):
        total, elapsed = reduce(position + np.float32(WORLD.rank))
        is_right = is_right and np.array_equal(total, expected)
        seconds.append(elapsed)
    return float(np.median(seconds[warm_up:])), is_right


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Measure an all-reduce by message size.")
    parser.add_argument("--modes", nargs="+", choices=MODES, default=["mpi"])
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES, help="in bytes")
    parser.add_argument("--repeats", type=int, default=15, help="of each size (default: 15)")
    parser.add_argument("--warm-up", type=int, default=3, help="before those (default: 3)")
    parser.add_argument("--result", type=Path, help="JSON file that rank 0 writes")
    return parser.parse_args()


def main() -> int:
    """Measure every mode; the exit status."""
    options = parse()
    modes, is_right = {}, True
    for name in options.modes:
        repeats, warm_up = options.repeats, options.warm_up
        measured = [measure(MODES[name], size, repeats, warm_up) for size in options.sizes]
        sums_are_right = all(right for _, right in measured)
        if not sums_are_right:
            print(f"rank {WORLD.rank}: mode {name} gave a wrong sum", file=sys.stderr)
        is_right = is_right and sums_are_right
        seconds = [median for median, _ in measured]
        modes[name] = {"sums_are_right": sums_are_right, "seconds": seconds}
    if WORLD.rank == 0:
        result = {"ranks": WORLD.size, "array_bytes": options.sizes, "modes": modes}
        print(f"{WORLD.size} ranks, sums right: {is_right}", flush=True)
        if options.result:
            options.result.write_text(json.dumps(result, indent=1) + "\n")
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
