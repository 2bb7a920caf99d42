"""What each rank of `distlab measure` executes: step, communication and both, timed the same way on all ranks."""

import os
import platform
import socket
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from distlab import cluster_spec, devices
from distlab.costs.measured.measurement import ClusterMeasurement, Spread, WrongMeasurement, write
from distlab.costs.measured.other_programs import CoreWatch, share_taken
from distlab.costs.measured.ranks import RANKS
from distlab.costs.measured.report import described
from distlab.runtime.errors import PlainError

if TYPE_CHECKING:
    from distlab.costs.measured.ranks import Communicator
    from distlab.costs.measured.training import TrainingSteps

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_SMALLEST, _FACTOR = 1024, 4


@dataclass(frozen=True)
class MeasureOptions:
    """What to measure, the same on all ranks; without `sizes` from 1 KiB to more than all gradients together."""

    model: str
    batch: int
    repeats: int
    warm_up: int
    sizes: tuple[int, ...]


def measure_cluster(
    *,
    output: Path,
    model: Literal["cnn", "mlp", "wide_cnn"] = "cnn",
    batch: int = 64,
    with_: Literal["horovod", "mpi"] = "horovod",
    gloo_from_slurm: bool = False,
    threads: int | None = None,
    repeats: int = 20,
    warm_up: int = 3,
    sizes: list[int] | None = None,
) -> int:
    """Measure on all ranks; rank 0 writes and speaks, also for the others' mistakes. Returns the exit status.

    Args:
        output: JSON file that rank 0 writes.
        model: A network of the course; wide_cnn has 128 filters.
        batch: Images per rank and step.
        with_: What communicates.
        gloo_from_slurm: srun has started the ranks, without MPI.
        threads: Of each rank; by default the ranks divide a host's cores.
        repeats: Of each measurement.
        warm_up: Repeats before, not counted.
        sizes: Bytes to all-reduce, multiples of 4; by default 1 KiB to all gradients.
    """
    if gloo_from_slurm:
        if with_ != "horovod":
            raise WrongMeasurement("--gloo-from-slurm is for --with horovod.")
        cluster_spec.gloo_from_slurm()
    if not output.parent.is_dir():  # before it has measured for minutes
        raise WrongMeasurement(f"There is no folder {output.parent}.")
    if any(size < 4 or size % 4 for size in sizes or ()):
        raise WrongMeasurement("--sizes are bytes of numbers, multiples of 4.")
    import tensorflow as tf  # before MPI, whose libraries it would disturb at the end

    tf.get_logger().setLevel("ERROR")
    communicator = RANKS[with_]()
    what = MeasureOptions(model, batch, repeats, warm_up, tuple(sizes or ()))
    try:
        used_threads, gpus = use_devices(communicator, threads)
        result = measure(communicator, what, used_threads, gpus)
    except PlainError:
        if communicator.rank == 0:
            raise
        return 2
    except Exception:
        communicator.give_up()
        raise
    if communicator.rank == 0:
        write(result, output)
        print(described(result))
    communicator.barrier()
    return 0


def use_devices(communicator: "Communicator", threads: int | None) -> tuple[int, int]:
    """Give this rank its GPU if there are any, and its threads; returns how many threads, and 1 if there is a GPU.

    Before TensorFlow's first operation. By default the ranks of a host divide its cores among them.
    """
    import tensorflow as tf

    if gpus := tf.config.list_physical_devices("GPU"):
        tf.config.set_visible_devices(gpus[communicator.local_rank % len(gpus)], "GPU")
    variable = os.environ.get("TF_NUM_INTRAOP_THREADS", "")
    if threads is None:
        threads = int(variable) if variable.isdigit() else max(1, devices.cores() // communicator.local_size)
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    return threads, int(bool(gpus))


def measure(communicator: "Communicator", options: MeasureOptions, threads: int, gpus: int) -> ClusterMeasurement:
    """Measure on all ranks; all get the same result. Raises WrongMeasurement, on all, where that cannot be."""
    import tensorflow as tf

    from distlab.costs.measured.training import TrainingSteps

    if communicator.size < 2:
        raise WrongMeasurement(
            "Only one rank was started, and communication takes two: "
            "mpirun -np 2 distlab measure …, or horovodrun -np 2 --gloo distlab measure …"
        )
    versions = {"python": platform.python_version(), "tensorflow": tf.__version__} | communicator.versions()
    facts = {"communication": communicator.name, **versions, "processor": platform.machine(), **vars(options)}
    require_agreement(communicator.gather(facts))
    places = communicator.gather((_machine(), socket.gethostname(), devices.allowed_cores(), gpus))

    watch = CoreWatch()
    steps = TrainingSteps(options.model, options.batch, communicator)
    sizes = options.sizes or default_sizes(sum(steps.gradient_bytes))
    options = replace(options, sizes=sizes)
    all_reduces = [_sweep(communicator, size, options) for size in sizes]
    alone, gradients_alone, together = _step_times(communicator, steps, options)
    core_uses = communicator.gather(watch.use(_machine(), needed=1 if gpus else threads))
    return ClusterMeasurement(
        date=datetime.now(UTC).date().isoformat(),
        versions=versions,
        communication=communicator.name,
        processor=platform.machine(),
        model=options.model,
        batch=options.batch,
        gradient_bytes=steps.gradient_bytes,
        fusion_bytes=communicator.fusion_bytes(sum(steps.gradient_bytes)),
        ranks_per_host=tuple(Counter((machine, host) for machine, host, _, _ in places).values()),
        machines=len({machine for machine, *_ in places}),
        cores=len({(machine, core) for machine, _, cores, _ in places for core in cores}),
        gpus=sum(gpu for *_, gpu in places),
        threads=threads,
        repeats=options.repeats,
        sizes=sizes,
        all_reduces=tuple(all_reduces),
        step_alone=Spread.of(alone.max(axis=0)),
        gradients_alone=Spread.of(gradients_alone.max(axis=0)),
        step=Spread.of(together.mean(axis=0)),
        cores_taken=share_taken(core_uses),
    )


def default_sizes(gradient_bytes: int) -> tuple[int, ...]:
    """Powers of 4 from 1 KiB to the first that is at least as many bytes as all gradients together."""
    sizes = [_SMALLEST]
    while sizes[-1] < gradient_bytes:
        sizes.append(sizes[-1] * _FACTOR)
    return tuple(sizes)


def require_agreement(facts: list[dict[str, object]]) -> None:
    """Raise WrongMeasurement unless all ranks have the same versions and options."""
    for rank, own in enumerate(facts):
        for name in sorted(facts[0].keys() | own.keys()):
            first, this = facts[0].get(name, "missing"), own.get(name, "missing")
            if first != this:
                raise WrongMeasurement(
                    f"The ranks disagree: {name} is {first} on rank 0 and {this} on rank {rank}; "
                    "start all of them with the same command and environment."
                )


def _step_times(
    communicator: "Communicator", steps: "TrainingSteps", options: MeasureOptions
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """A step alone, the gradients' all-reduce alone, and whole steps, one after another as in training."""
    alone = _timed(communicator, steps.alone, options)
    gradients_alone = _timed(communicator, steps.communicate, options)
    together = _timed(communicator, steps.together, options, with_barriers=False)
    return alone, gradients_alone, together


def _sweep(communicator: "Communicator", size: int, options: MeasureOptions) -> Spread:
    """One size of the sweep; raises WrongMeasurement for a sum that is wrong."""
    position = np.arange(size // 4, dtype=np.float32) % 100
    own = position + np.float32(communicator.rank)
    expected = position * communicator.size + sum(range(communicator.size))
    totals: list[NDArray[np.float32]] = []

    def work() -> None:
        totals[:] = [communicator.all_reduce(own, f"bytes.{size}")]

    repeats = _timed(communicator, work, options)
    if not all(communicator.gather(np.array_equal(totals[0], expected))):
        raise WrongMeasurement(f"An all-reduce of {size:,} bytes gave a wrong sum; this installation cannot be used.")
    return Spread.of(repeats.max(axis=0))


def _timed(
    communicator: "Communicator", work: Callable[[], object], options: MeasureOptions, with_barriers: bool = True
) -> NDArray[np.float64]:
    """Seconds of each repeat on each rank, (ranks, repeats), after the warm-up.

    Without barriers only the first repeat waits for all ranks.
    """
    for _ in range(options.warm_up):
        work()
    communicator.barrier()
    own = []
    for _ in range(options.repeats):
        if with_barriers:
            communicator.barrier()
        start = time.perf_counter()
        work()
        own.append(time.perf_counter() - start)
    return np.array(communicator.gather(own))


def _machine() -> str:
    """What distinguishes this computer from others, but not the hosts that are its namespaces or containers."""
    return _BOOT.read_text().strip() if _BOOT.exists() else socket.gethostname()
