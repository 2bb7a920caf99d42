"""`distlab measure`, which each rank of a cluster executes; rank 0 writes what they measured."""

from pathlib import Path
from typing import Literal

from distlab import cluster_spec
from distlab.costs.measured.measurement import WrongMeasurement, write
from distlab.costs.reports import of_measurement


def measure_cluster(
    *,
    output: Path,
    model: Literal["cnn", "mlp", "wide_cnn"] = "cnn",
    batch: int = 64,
    gloo_from_slurm: bool = False,
    threads: int | None = None,
    repeats: int = 20,
    warm_up: int = 3,
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

    measured = on_ranks.measurement(model, batch, threads, repeats, warm_up)
    if hvd.rank() == 0:
        write(measured, output)
        print(of_measurement(measured))
    on_ranks.barrier()
