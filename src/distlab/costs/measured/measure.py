"""What each rank of `distlab measure` executes: step, communication and both, timed the same way on all ranks."""

import os
import platform
import socket
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from distlab import cluster_spec, devices
from distlab.costs.measured.measurement import ClusterMeasurement, Spread, WrongMeasurement, write
from distlab.costs.measured.report import described

Timer = Callable[..., NDArray[np.float64]]
"""`timed_on_all_ranks` with the numbers of repeats filled in."""

_FUSION_BYTES = 128 * 2**20
"""Horovod's default since release 0.21 (docs/tensor-fusion.md)."""


def measure_cluster(
    *,
    output: Path,
    model: Literal["cnn", "mlp", "wide_cnn"] = "cnn",
    batch: int = 64,
    gloo_from_slurm: bool = False,
    threads: int | None = None,
    repeats: int = 20,
    warm_up: int = 3,
    sizes: list[int] | None = None,
) -> None:
    """Measure on all ranks; rank 0 writes and speaks. Raises WrongMeasurement for one rank alone.

    Args:
        output: JSON file that rank 0 writes.
        model: A network of the course; wide_cnn has 128 filters.
        batch: Images per rank and step.
        gloo_from_slurm: srun has started the ranks, without MPI.
        threads: Of each rank; by default the ranks divide a host's cores.
        repeats: Of each measurement.
        warm_up: Repeats before, not counted.
        sizes: Bytes to all-reduce, multiples of 4; by default 1 KiB to all gradients.
    """
    if gloo_from_slurm:
        cluster_spec.gloo_from_slurm()
    else:
        cluster_spec.check_mpi_of_srun(or_gloo=True)
    import tensorflow as tf  # before MPI, whose libraries it would disturb at the end

    tf.get_logger().setLevel("ERROR")
    import horovod.tensorflow as hvd

    hvd.init()
    if hvd.size() < 2:
        raise WrongMeasurement(
            "Only one rank was started, and communication takes two: "
            "mpirun -np 2 distlab measure …, or horovodrun -np 2 --gloo distlab measure …"
        )
    threads, gpus = _use_devices(threads)
    timed = partial(timed_on_all_ranks, repeats=repeats, warm_up=warm_up)
    steps = training_steps(model, batch)
    sizes = sizes or default_sizes(sum(steps.gradient_bytes))
    # What distinguishes this computer from others, but not the hosts that are its namespaces or containers.
    boot = Path("/proc/sys/kernel/random/boot_id")
    machine = boot.read_text().strip() if boot.exists() else socket.gethostname()
    places = _gather((machine, socket.gethostname(), devices.allowed_cores(), gpus))
    fusion = os.environ.get("HOROVOD_FUSION_THRESHOLD", "")
    measurement = ClusterMeasurement(
        date=datetime.now(UTC).date().isoformat(),
        versions=_versions(),
        communication=f"Horovod over {'Gloo' if hvd.gloo_enabled() else 'MPI'}",
        processor=platform.machine(),
        model=model,
        batch=batch,
        gradient_bytes=steps.gradient_bytes,
        # 0, no fusion, counts as 1 byte: each gradient by itself.
        fusion_bytes=max(1, int(fusion)) if fusion.isdigit() else _FUSION_BYTES,
        ranks_per_host=tuple(Counter((machine, host) for machine, host, _, _ in places).values()),
        machines=len({machine for machine, *_ in places}),
        cores=len({(machine, core) for machine, _, cores, _ in places for core in cores}),
        gpus=sum(gpu for *_, gpu in places),
        threads=threads,
        repeats=repeats,
        sizes=tuple(sizes),
        all_reduces=tuple(_all_reduce(size, timed) for size in sizes),
        step_alone=Spread.of(timed(steps.alone).max(axis=0)),
        gradients_alone=Spread.of(timed(steps.communicate).max(axis=0)),
        step=Spread.of(timed(steps.together, with_barriers=False).mean(axis=0)),
    )
    if hvd.rank() == 0:
        write(measurement, output)
        print(described(measurement))
    _barrier()


def _use_devices(threads: int | None) -> tuple[int, int]:
    """Give this rank its GPU if there are any, and its threads; returns how many threads, and 1 if there is a GPU.

    Before TensorFlow's first operation. By default the ranks of a host divide its cores among them.
    """
    import horovod.tensorflow as hvd
    import tensorflow as tf

    if gpus := tf.config.list_physical_devices("GPU"):
        own = gpus[hvd.local_rank() % len(gpus)]
        tf.config.set_visible_devices(own, "GPU")
        tf.config.experimental.set_memory_growth(own, True)
    variable = os.environ.get("TF_NUM_INTRAOP_THREADS", "")
    if threads is None:
        threads = int(variable) if variable.isdigit() else max(1, devices.cores() // hvd.local_size())
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    return threads, int(bool(gpus))


def _versions() -> dict[str, str]:
    """Of Python and of the packages that decide how fast training and communication are."""
    import horovod.tensorflow as hvd
    import tensorflow as tf

    versions = {"python": platform.python_version(), "tensorflow": tf.__version__, "horovod": version("horovod")}
    if hvd.mpi_enabled():
        from mpi4py import MPI

        versions["mpi"] = MPI.Get_library_version().split(",")[0].strip()
    if nccl := hvd.nccl_built():
        versions["nccl"] = str(nccl)
    return versions


class TrainingSteps(NamedTuple):
    """Three functions, each of which does its work once: a step alone, its communication alone, both together."""

    gradient_bytes: tuple[int, ...]
    alone: Callable[[], object]
    communicate: Callable[[], object]
    together: Callable[[], object]


def training_steps(name: str, batch: int) -> TrainingSteps:
    """Of a network of the course on one batch of random images."""
    from distlab import models  # before TensorFlow: it selects tf-keras

    # isort: split
    import horovod.tensorflow as hvd
    import tensorflow as tf

    tf.keras.utils.set_random_seed(1)
    networks: dict[str, Callable[[], Any]] = {
        "cnn": models.cnn,
        "mlp": models.mlp,
        "wide_cnn": partial(models.cnn, filters=128),
    }
    model = networks[name]()
    optimizer = tf.keras.optimizers.SGD(0.01)
    optimizer.build(model.trainable_variables)
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    random = np.random.default_rng(hvd.rank())
    images = tf.constant(random.random((batch, *models.IMAGE_SHAPE), np.float32))
    labels = tf.constant(random.integers(models.CLASSES, size=batch))
    graph = partial(tf.function, autograph=False)

    def gradients() -> list[Any]:
        with tf.GradientTape() as tape:
            value = loss(labels, model(images, training=True))
        return list(tape.gradient(value, model.trainable_variables))

    def average(gradients: list[Any]) -> list[Any]:
        # One all-reduce for each gradient, which Horovod fuses, as its DistributedGradientTape does.
        return [hvd.allreduce(each, name=f"gradient.{place}") for place, each in enumerate(gradients)]

    def apply(gradients: list[Any]) -> Any:
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return tf.identity(optimizer.iterations)  # known when the weights are

    constant = graph(gradients)()
    alone, together = graph(lambda: apply(gradients())), graph(lambda: apply(average(gradients())))
    averaged = graph(average)
    return TrainingSteps(
        tuple(4 * int(np.prod(each.shape)) for each in model.trainable_variables),
        alone=lambda: alone().numpy(),
        communicate=lambda: averaged(constant)[-1].numpy(),
        together=lambda: together().numpy(),
    )


def default_sizes(gradient_bytes: int) -> list[int]:
    """Powers of 4 from 1 KiB to the first that is at least as many bytes as all gradients together."""
    sizes = [1024]
    while sizes[-1] < gradient_bytes:
        sizes.append(4 * sizes[-1])
    return sizes


def timed_on_all_ranks(
    work: Callable[[], object], repeats: int, warm_up: int, with_barriers: bool = True
) -> NDArray[np.float64]:
    """Seconds of each repeat on each rank, (ranks, repeats), after the warm-up.

    Without barriers only the first repeat waits for all ranks.
    """
    for _ in range(warm_up):
        work()
    _barrier()
    own = []
    for _ in range(repeats):
        if with_barriers:
            _barrier()
        start = time.perf_counter()
        work()
        own.append(time.perf_counter() - start)
    return np.array(_gather(own))


def _all_reduce(size: int, timed: Timer) -> Spread:
    """One size of the sweep."""
    import horovod.tensorflow as hvd
    import tensorflow as tf

    # Under one name for all repeats: Horovod remembers what the ranks agreed on for a name, as for gradients.
    work = partial(hvd.allreduce, tf.zeros(size // 4), op=hvd.Sum, name=f"bytes.{size}")
    return Spread.of(timed(lambda: work().numpy()).max(axis=0))


def _gather(value: object) -> list[Any]:
    """The values of all ranks by rank, on each rank."""
    import horovod.tensorflow as hvd

    gathered: list[Any] = hvd.allgather_object(value, name="gather")
    return gathered


def _barrier() -> None:
    """An all-reduce of one number, as Horovod's versions have no barrier in common."""
    import horovod.tensorflow as hvd
    import tensorflow as tf

    hvd.allreduce(tf.zeros(1), name="barrier").numpy()
