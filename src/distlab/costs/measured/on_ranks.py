"""What each rank of `distlab measure` does: step, communication and both, timed the same way on all ranks.

Each rank imports it when Horovod has connected them. An all-reduce of one number is the barrier, as Horovod's versions
have none in common.
"""

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
from typing import Any

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from distlab import devices, models
from distlab.costs.measured.measurement import ClusterMeasurement, Spread

Work = Callable[[], object]
"""What one repeat does; it returns when the result is known."""

NETWORKS: dict[str, Callable[[], Any]] = {
    "cnn": models.cnn,
    "mlp": models.mlp,
    "wide_cnn": partial(models.cnn, filters=128),
}
FUSION_BYTES = 128 * 2**20
"""Horovod's default since release 0.21 (docs/tensor-fusion.md)."""


def measurement(model: str, batch: int, threads: int | None, repeats: int, warm_up: int) -> ClusterMeasurement:
    """The same on all ranks; the arguments are those of `measure_cluster`."""
    threads, has_gpu = _use_devices(threads)
    timed = partial(_timed, repeats=repeats, warm_up=warm_up)
    gradient_bytes, step_alone, communicate, step = _training_step(model, batch)
    sizes = [1024]
    while sizes[-1] < sum(gradient_bytes):
        sizes.append(4 * sizes[-1])
    # What distinguishes this computer from others, but not the hosts that are its namespaces or containers.
    boot = Path("/proc/sys/kernel/random/boot_id")
    machine = boot.read_text().strip() if boot.exists() else socket.gethostname()
    places = _gathered((machine, socket.gethostname(), devices.allowed_cores(), has_gpu))
    fusion = os.environ.get("HOROVOD_FUSION_THRESHOLD", "")
    return ClusterMeasurement(
        date=datetime.now(UTC).date().isoformat(),
        versions=_versions(),
        communication=f"Horovod over {'Gloo' if hvd.gloo_enabled() else 'MPI'}",
        processor=platform.machine(),
        model=model,
        batch=batch,
        gradient_bytes=gradient_bytes,
        # 0, no fusion, counts as 1 byte: each gradient by itself.
        fusion_bytes=max(1, int(fusion)) if fusion.isdigit() else FUSION_BYTES,
        ranks_per_host=tuple(Counter((machine, host) for machine, host, _, _ in places).values()),
        machines=len({machine for machine, *_ in places}),
        cores=len({(machine, core) for machine, _, cores, _ in places for core in cores}),
        gpus=sum(has_gpu for *_, has_gpu in places),
        threads=threads,
        repeats=repeats,
        sizes=tuple(sizes),
        all_reduces=tuple(Spread.of(timed(_all_reduce(size)).max(axis=0)) for size in sizes),
        step_alone=Spread.of(timed(step_alone).max(axis=0)),
        gradients_alone=Spread.of(timed(communicate).max(axis=0)),
        step=Spread.of(timed(step, with_barriers=False).mean(axis=0)),
    )


def barrier() -> None:
    """Wait until all ranks are here."""
    hvd.allreduce(tf.zeros(1), name="barrier").numpy()


def _use_devices(threads: int | None) -> tuple[int, bool]:
    """Give this rank its GPU if there are any, and its threads; returns how many threads, and whether it has a GPU.

    Before TensorFlow's first operation. By default the ranks of a host divide its cores among them.
    """
    gpus = tf.config.list_physical_devices("GPU")
    if gpus:
        own = gpus[hvd.local_rank() % len(gpus)]
        tf.config.set_visible_devices(own, "GPU")
        tf.config.experimental.set_memory_growth(own, True)
    variable = os.environ.get("TF_NUM_INTRAOP_THREADS", "")
    if threads is None:
        threads = int(variable) if variable.isdigit() else max(1, devices.cores() // hvd.local_size())
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    return threads, bool(gpus)


def _versions() -> dict[str, str]:
    """Of Python and of the packages that decide how fast training and communication are."""
    found = {"python": platform.python_version(), "tensorflow": tf.__version__, "horovod": version("horovod")}
    if hvd.mpi_enabled():
        from mpi4py import MPI  # not there without MPI

        found["mpi"] = MPI.Get_library_version().split(",")[0].strip()
    if nccl := hvd.nccl_built():
        found["nccl"] = str(nccl)
    return found


def _training_step(name: str, batch: int) -> tuple[tuple[int, ...], Work, Work, Work]:
    """A network of the course on one batch of random images.

    Returns the bytes of each gradient, a step without communication, its communication alone, and both together.
    """
    tf.keras.utils.set_random_seed(1)
    model = NETWORKS[name]()
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
    gradient_bytes = tuple(4 * int(np.prod(each.shape)) for each in model.trainable_variables)
    return gradient_bytes, lambda: alone().numpy(), lambda: averaged(constant)[-1].numpy(), lambda: together().numpy()


def _all_reduce(size: int) -> Work:
    """An all-reduce of `size` bytes, a multiple of 4."""
    # Under one name for all repeats: Horovod remembers what the ranks agreed on for a name, as for gradients.
    reduce = partial(hvd.allreduce, tf.zeros(size // 4), op=hvd.Sum, name=f"bytes.{size}")
    return lambda: reduce().numpy()


def _timed(work: Work, repeats: int, warm_up: int, with_barriers: bool = True) -> NDArray[np.float64]:
    """Seconds of each repeat on each rank, (ranks, repeats), after the warm-up.

    Without barriers only the first repeat waits for all ranks.
    """
    for _ in range(warm_up):
        work()
    barrier()
    own = []
    for _ in range(repeats):
        if with_barriers:
            barrier()
        start = time.perf_counter()
        work()
        own.append(time.perf_counter() - start)
    return np.array(_gathered(own))


def _gathered(value: object) -> list[Any]:
    """The values of all ranks by rank, on each rank."""
    values: list[Any] = hvd.allgather_object(value, name="gather")
    return values
