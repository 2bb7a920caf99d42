"""What each rank of `distlab measure` executes: step, communication and both, timed the same way on all ranks."""

import os
import platform
import socket
from collections import Counter
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Literal

from distlab import cluster_spec, devices
from distlab.costs.measured.measurement import ClusterMeasurement, Spread, WrongMeasurement, write
from distlab.costs.measured.report import described

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
    from distlab.costs.measured import on_ranks

    threads, has_gpu = on_ranks.use_devices(threads)
    timed = partial(on_ranks.timed, repeats=repeats, warm_up=warm_up)
    gradient_bytes, step_alone, communicate, step = on_ranks.training_step(model, batch)
    if not sizes:
        sizes = [1024]
        while sizes[-1] < sum(gradient_bytes):
            sizes.append(4 * sizes[-1])
    # What distinguishes this computer from others, but not the hosts that are its namespaces or containers.
    boot = Path("/proc/sys/kernel/random/boot_id")
    machine = boot.read_text().strip() if boot.exists() else socket.gethostname()
    places = on_ranks.gathered((machine, socket.gethostname(), devices.allowed_cores(), has_gpu))
    fusion = os.environ.get("HOROVOD_FUSION_THRESHOLD", "")
    measurement = ClusterMeasurement(
        date=datetime.now(UTC).date().isoformat(),
        versions=on_ranks.versions(),
        communication=f"Horovod over {'Gloo' if hvd.gloo_enabled() else 'MPI'}",
        processor=platform.machine(),
        model=model,
        batch=batch,
        gradient_bytes=gradient_bytes,
        # 0, no fusion, counts as 1 byte: each gradient by itself.
        fusion_bytes=max(1, int(fusion)) if fusion.isdigit() else _FUSION_BYTES,
        ranks_per_host=tuple(Counter((machine, host) for machine, host, _, _ in places).values()),
        machines=len({machine for machine, *_ in places}),
        cores=len({(machine, core) for machine, _, cores, _ in places for core in cores}),
        gpus=sum(has_gpu for *_, has_gpu in places),
        threads=threads,
        repeats=repeats,
        sizes=tuple(sizes),
        all_reduces=tuple(Spread.of(timed(on_ranks.all_reduce(size)).max(axis=0)) for size in sizes),
        step_alone=Spread.of(timed(step_alone).max(axis=0)),
        gradients_alone=Spread.of(timed(communicate).max(axis=0)),
        step=Spread.of(timed(step, with_barriers=False).mean(axis=0)),
    )
    if hvd.rank() == 0:
        write(measurement, output)
        print(described(measurement))
    on_ranks.barrier()
