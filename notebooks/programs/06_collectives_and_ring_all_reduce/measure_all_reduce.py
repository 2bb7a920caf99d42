"""Measure an all-reduce by message size, over real processes, and check every sum.

On a laptop, two processes over MPI, both ways one after the other:

    mpirun -np 2 python measure_all_reduce.py --modes mpi ring --result mpi.json

Horovod chooses Gloo or MPI by how it is launched:

    horovodrun -np 2 --gloo python measure_all_reduce.py --modes horovod --result gloo.json
    mpirun -np 2 python measure_all_reduce.py --modes horovod --result horovod_mpi.json

Under Slurm, in a batch script or after `salloc --nodes=2 --ntasks-per-node=4`:

    srun --mpi=pmix python measure_all_reduce.py --modes mpi ring --result mpi.json

| mode | what is measured |
|---|---|
| mpi | `MPI_Allreduce` through mpi4py; the MPI library chooses the algorithm |
| ring | the course's `ring_all_reduce`, the program of the virtual cluster, its messages sent by mpi4py |
| horovod | `hvd.allreduce` on a TensorFlow tensor |

For each size all ranks meet at a barrier before each all-reduce; the first few are a warm-up and do not count; the
result is the median of the others, as rank 0 saw them. Rank 0 writes the result file; a wrong sum ends the program
with status 1.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

SIZES = [4**power for power in range(2, 12)]
"""16 bytes to 4 MiB."""


class Backend(NamedTuple):
    """A way to all-reduce: `all_reduce(array)` gives the sum and the seconds that it took after a barrier."""

    rank: int
    size: int
    name: str
    all_reduce: Callable[[np.ndarray], tuple[np.ndarray, float]]


def mpi() -> Backend:
    """MPI's own all-reduce."""
    from mpi4py import MPI

    world = MPI.COMM_WORLD

    def all_reduce(array: np.ndarray) -> tuple[np.ndarray, float]:
        total = np.empty_like(array)
        world.Barrier()
        start = time.perf_counter()
        world.Allreduce(array, total, MPI.SUM)
        return total, time.perf_counter() - start

    return Backend(world.rank, world.size, MPI.Get_library_version().split(",")[0], all_reduce)


def ring() -> Backend:
    """The ring of the course; `run_over_mpi` has a barrier before the clock starts."""
    from mpi4py import MPI

    from distlab.collectives import ring_all_reduce
    from distlab.simulate import run_over_mpi

    def all_reduce(array: np.ndarray) -> tuple[np.ndarray, float]:
        run = run_over_mpi(ring_all_reduce, array)
        return run.result, run.elapsed

    world = MPI.COMM_WORLD
    return Backend(world.rank, world.size, "distlab.collectives over mpi4py", all_reduce)


def horovod() -> Backend:
    """Horovod's all-reduce of a TensorFlow tensor."""
    import horovod.tensorflow as hvd
    import tensorflow as tf

    import distlab  # noqa: F401  selects tf-keras; it must come before TensorFlow

    hvd.init()

    def all_reduce(array: np.ndarray) -> tuple[np.ndarray, float]:
        tensor = tf.constant(array)
        # One name per size: Horovod remembers what the ranks agreed on for a name, as it does for gradients.
        hvd.allreduce(tf.zeros(1), op=hvd.Sum, name="barrier")
        start = time.perf_counter()
        total = hvd.allreduce(tensor, op=hvd.Sum, name=f"bytes.{array.nbytes}")
        return total.numpy(), time.perf_counter() - start

    controller = "Gloo" if hvd.gloo_enabled() else "MPI"
    return Backend(hvd.rank(), hvd.size(), f"Horovod over {controller}", all_reduce)


MODES = {"mpi": mpi, "ring": ring, "horovod": horovod}


def measure(backend: Backend, array_bytes: int, repeats: int, warm_up: int) -> tuple[list[float], bool]:
    """The seconds of each of `repeats` all-reduces of float32, and whether every sum was right."""
    position = np.arange(array_bytes // 4, dtype=np.float32) % 100
    expected = position * backend.size + sum(range(backend.size))
    seconds, is_right = [], True
    for _ in range(warm_up + repeats):
        total, elapsed = backend.all_reduce(position + np.float32(backend.rank))
        is_right = is_right and np.array_equal(total, expected)
        seconds.append(elapsed)
    return seconds[warm_up:], is_right


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Measure an all-reduce by message size.")
    parser.add_argument("--modes", nargs="+", choices=MODES, default=["mpi"], help="what to measure, in this order")
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES, help="bytes, multiples of 4")
    parser.add_argument("--repeats", type=int, default=15, help="measurements of each size (default: 15)")
    parser.add_argument("--warm-up", type=int, default=3, help="all-reduces before those, not counted (default: 3)")
    parser.add_argument("--result", type=Path, help="JSON file that rank 0 writes")
    options = parser.parse_args(arguments)
    if "HOROVOD_GLOO_RENDEZVOUS_ADDR" in os.environ and options.modes != ["horovod"]:
        parser.error("the modes mpi and ring need mpirun: under horovodrun --gloo every process would be rank 0 of 1")
    return options


def main() -> int:
    """Measure every mode; the exit status."""
    options = parse()
    modes, is_right, rank, size = {}, True, 0, 1
    for name in options.modes:
        backend = MODES[name]()
        rank, size = backend.rank, backend.size
        measured = [measure(backend, one, options.repeats, options.warm_up) for one in options.sizes]
        mode_is_right = all(right for _, right in measured)
        if not mode_is_right:
            print(f"rank {rank}: mode {name} gave a wrong sum", file=sys.stderr)
        is_right = is_right and mode_is_right
        modes[name] = {
            "name": backend.name,
            "ranks": size,
            "sums_are_right": mode_is_right,
        }
        for quantity, share in {"seconds": 0.5, "lower_quartile": 0.25, "upper_quartile": 0.75}.items():
            modes[name][quantity] = [float(np.quantile(seconds, share)) for seconds, _ in measured]
    if rank == 0:
        result = {"ranks": size, "repeats": options.repeats, "warm_up": options.warm_up, "array_bytes": options.sizes}
        result["modes"] = modes
        for name, mode in modes.items():
            print(f"{name}: {mode['name']}, {size} ranks, sums right: {mode['sums_are_right']}", flush=True)
        if options.result:
            options.result.write_text(json.dumps(result, indent=1) + "\n")
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
