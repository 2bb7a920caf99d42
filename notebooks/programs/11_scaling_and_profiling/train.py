"""Train the course's CNN with Horovod and `fit`, and let it be profiled.

On a laptop, two ranks over MPI, plain and with every instrument:

    mpirun -np 2 python train.py --result result.json
    mpicc -shared -fPIC -O2 -o libmpi_profile.so mpi_profile.c
    HOROVOD_TIMELINE=timeline.json MPI_PROFILE=profile LD_PRELOAD=$PWD/libmpi_profile.so \
        mpirun -np 2 python train.py --trace trace --result result.json

Over Gloo (the MPI profile then has nothing to count), and under Slurm in a batch script or
after `salloc --nodes=2 --ntasks-per-node=2`:

    horovodrun -np 2 --gloo python train.py --result result.json
    srun --mpi=pmix python train.py --result result.json
"""

import argparse
import json
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from distlab import cluster_spec, data, devices, models, profiling  # first: selects tf-keras

import horovod.tensorflow as hvd
import horovod.tensorflow.keras as hvd_keras
import numpy as np
import tensorflow as tf

IMAGES, BATCH = 5000, 256  # of all ranks in an epoch; of a rank in a step


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Train with Horovod.")
    parser.add_argument("--dataset", choices=data.NAMES, default="digits")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--trace", type=Path, help="folder for rank 0's trace of an epoch")
    parser.add_argument("--result", type=Path, help="JSON file that rank 0 writes")
    cluster_spec.check_mpi_of_srun()
    return parser.parse_args()


def take_device() -> None:
    """The GPU of this local rank where there is one; else one core."""
    if gpus := tf.config.list_physical_devices("GPU"):
        gpu = gpus[hvd.local_rank() % len(gpus)]
        tf.config.set_visible_devices(gpu, "GPU")
        tf.config.experimental.set_memory_growth(gpu, True)
        return
    devices.hold_cores({devices.core_of(hvd.local_rank(), devices.allowed_cores())})
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(2)  # else biases are handed over last


def batches(dataset: str) -> tf.data.Dataset:
    """One epoch of this rank's part; the last batch may be smaller."""
    images, labels = data.load(dataset).train
    numbers = np.resize(np.arange(len(images)), IMAGES)
    part = np.random.default_rng(11).permutation(numbers)[hvd.rank() :: hvd.size()]
    samples = tf.data.Dataset.from_tensor_slices((images[part], labels[part]))
    return samples.batch(BATCH)


@contextmanager
def counted_by_mpi_profile() -> Iterator[None]:
    """Let the preloaded library, if there is one, count what is called inside."""
    if not (hvd.mpi_built() and hvd.mpi_enabled()):
        yield
        return
    from mpi4py import MPI  # after TensorFlow: started before it, Open MPI crashes at the end

    MPI.Pcontrol(2)  # forget what was counted, and count
    yield
    MPI.Pcontrol(0)  # stop


def trace_epoch(model: tf.keras.Model, fed: tf.data.Dataset, steps: int, folder: Path) -> None:
    """One epoch more on all ranks; on rank 0 under TensorFlow's profiler."""
    with tf.profiler.experimental.Profile(str(folder)) if hvd.rank() == 0 else nullcontext():
        model.fit(fed, steps_per_epoch=steps, epochs=1, verbose=0)


def main() -> None:
    """Train; rank 0 writes the result."""
    options = parse()
    hvd.init()
    take_device()
    tf.keras.utils.set_random_seed(11)
    fed = batches(options.dataset)
    steps = IMAGES // hvd.size() // BATCH  # the rest begins the next epoch

    model = models.cnn()
    optimizer = hvd_keras.DistributedOptimizer(tf.keras.optimizers.SGD(0.01 * hvd.size()))
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss)
    model.optimizer.build(model.trainable_variables)

    with counted_by_mpi_profile():
        # Before the first step: BroadcastGlobalVariablesCallback acts after it.
        hvd.broadcast_variables([*model.variables, *model.optimizer.variables], root_rank=0)
        how = {"steps_per_epoch": steps, "epochs": options.epochs, "verbose": 0}
        model.fit(fed.repeat(), **how)
    operations = []
    if options.trace:
        trace_epoch(model, fed, steps, options.trace)
        if hvd.rank() == 0:
            operations = profiling.tensorflow_trace.operations(options.trace)
    if hvd.rank() == 0:
        result = {"steps_per_epoch": steps, "gradient_bytes": 4 * model.count_params()}
        names = [variable.name for variable in model.trainable_variables]
        result["variables"] = [name.removesuffix(":0") for name in names]
        result["operations"] = [operation._asdict() for operation in operations]
        print(f"{hvd.size()} ranks, {options.epochs} epochs of {steps} steps")
        if options.result:
            options.result.write_text(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
