"""Images per second of a network of the course, trained in one of several ways.

On a laptop:

    python measure_throughput.py --way lecture --result result.json
    python measure_throughput.py --way mirrored --devices 2 --result result.json
    distlab launch --workers 2 measure_throughput.py -- --way multi_worker --result result.json
    horovodrun -np 2 --gloo python measure_throughput.py --way horovod --result result.json
    mpirun -np 2 python measure_throughput.py --way horovod --result result.json

Core for core: one rank, two side by side without the all-reduce, two together; the same for --way multi_worker:

    horovodrun -np 1 --gloo python measure_throughput.py --way horovod --model cnn --batch 1024 --cores 1
    horovodrun -np 2 --gloo python measure_throughput.py --way horovod --model cnn --batch 1024 --cores 1 --apart
    horovodrun -np 2 --gloo python measure_throughput.py --way horovod --model cnn --batch 1024 --cores 1

Under Slurm, in a batch script or after `salloc --nodes=2 --ntasks-per-node=1`:

    srun --mpi=pmix python measure_throughput.py --way horovod --result result.json

| way | what it is |
|---|---|
| lecture | NumPy arrays, batches of 32, one step per call from Python |
| ours | the fast program of notebook 02, tf.data with few threads, batches of 128, 16 steps per call; a fused Adam |
| mirrored, multi_worker, horovod | ours, 128 images for each device, worker or rank in a step |

The images are counted in the training step. The first epoch does not count; the result is the median of the others.
`core_share` is what a process had of its cores: 1 unless it waits or other programs use them.
"""

import argparse
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from distlab import cluster_spec, data, devices, models  # before TensorFlow: it selects tf-keras

# isort: split
import numpy as np
import tensorflow as tf
from core_share import CoreShare
from throughput import Throughput

WAYS = ("lecture", "ours", "mirrored", "multi_worker", "horovod")
MODELS = {"mlp": models.mlp, "cnn": models.cnn}
STEPS_PER_CALL = 16


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Images per second of one network, trained in one of several ways.")
    parser.add_argument("--way", choices=WAYS, required=True)
    parser.add_argument("--model", choices=MODELS, default="mlp", help="(default: mlp, the lecture's 784 - 128 - 10)")
    parser.add_argument("--devices", type=int, default=1, help="of one process, for --way mirrored (default: 1)")
    parser.add_argument("--cores", type=int, default=0, help="of each process, and threads (default: all, not bound)")
    parser.add_argument("--apart", action="store_true", help="workers or ranks train side by side, without all-reduce")
    parser.add_argument("--dataset", choices=data.NAMES, default="digits")
    parser.add_argument("--batch", type=int, help="images of a device in a step (default: 128; the lecture's is 32)")
    parser.add_argument("--images", type=int, default=16384, help="of an epoch and a device; a small set is repeated")
    parser.add_argument("--epochs", type=int, default=5, help="that count (default: 5)")
    parser.add_argument("--result", type=Path, help="JSON file that the first process writes")
    options = parser.parse_args()
    options.batch = options.batch or (32 if options.way == "lecture" else 128)
    return options


class Processes(NamedTuple):
    """How many train, which this is, what it trains with, and `add_up(array)`, the sum of the arrays of all."""

    count: int
    index: int
    strategy: tf.distribute.Strategy
    add_up: Callable[[np.ndarray], tf.Tensor | np.ndarray]


def prepare(options: argparse.Namespace) -> Processes:
    """Start what the way needs; cores and threads come first, because TensorFlow fixes its threads when it starts."""
    if options.way == "horovod":
        import horovod.tensorflow as hvd

        cluster_spec.check_mpi_of_srun()
        hvd.init()
        hold_cores(options.cores, hvd.local_rank())
        if gpus := tf.config.list_physical_devices("GPU"):
            own = gpus[hvd.local_rank() % len(gpus)]
            tf.config.set_visible_devices(own, "GPU")
            tf.config.experimental.set_memory_growth(own, True)

        def all_reduce(array: np.ndarray) -> tf.Tensor:
            return hvd.allreduce(tf.constant(array), op=hvd.Sum, name=f"sum.{array.size}")

        return Processes(hvd.size(), hvd.rank(), tf.distribute.get_strategy(), all_reduce)
    if options.way == "multi_worker":
        index = tf.distribute.cluster_resolver.TFConfigClusterResolver().task_id or 0
        hold_cores(options.cores, index)
        together = tf.distribute.MultiWorkerMirroredStrategy()

        @tf.function
        def all_reduce(array: tf.Tensor) -> tf.Tensor:
            # A copy that the replica's device holds: an argument of a graph is on no device, and cannot be reduced.
            return together.run(lambda: tf.distribute.get_replica_context().all_reduce("sum", tf.identity(array)))

        strategy = tf.distribute.get_strategy() if options.apart else together
        return Processes(together.num_replicas_in_sync, index, strategy, all_reduce)
    hold_cores(options.cores, 0)
    if options.way == "mirrored":
        return Processes(1, 0, tf.distribute.MirroredStrategy(devices.at_least(options.devices)), np.copy)
    return Processes(1, 0, tf.distribute.get_strategy(), np.copy)


def hold_cores(count: int, index: int) -> None:
    """Give the process of this index on its host `count` cores, its own if there are enough; 0 leaves it all."""
    if count:
        allowed = devices.allowed_cores()
        devices.hold_cores({devices.core_of(index * count + place, allowed) for place in range(count)})
        # With more threads than cores the threads only wait for one another.
        tf.config.threading.set_intra_op_parallelism_threads(count)
        tf.config.threading.set_inter_op_parallelism_threads(count)


def batches(images: np.ndarray, labels: np.ndarray, batch: int) -> tf.data.Dataset:
    """Without end, in a new order each epoch; numbers are shuffled, then a whole batch is gathered at once."""
    with tf.device("CPU:0"):
        images, labels = tf.constant(images), tf.constant(labels)
    lean = tf.data.Options()  # no helper threads but prefetch's: they would compete with the training for the cores
    lean.autotune.enabled = False
    lean.experimental_optimization.apply_default_optimizations = False
    lean.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF  # each shuffles its own
    order = tf.data.Dataset.range(len(images)).shuffle(len(images)).repeat().batch(batch)
    return (
        order.map(lambda chosen: (tf.gather(images, chosen), tf.gather(labels, chosen))).prefetch(2).with_options(lean)
    )


def fused_adam(learning_rate: float) -> tf.keras.optimizers.Optimizer:
    """Adam by one operation for each array of weights; Keras' newer one takes a dozen for the same formula."""
    return tf.keras.optimizers.legacy.Adam(learning_rate)


def main() -> None:
    """Train and measure; the first process writes the result."""
    options = parse()
    if options.way != "multi_worker":
        os.environ.pop("TF_CONFIG", None)
    processes = prepare(options)
    replicas = processes.strategy.num_replicas_in_sync  # those that `fit` knows of: 1 under Horovod and with --apart
    tf.get_logger().setLevel("ERROR")
    images, labels = (
        np.resize(array, (options.images, *array.shape[1:])) for array in data.load(options.dataset).train
    )

    is_lecture = options.way == "lecture"
    with processes.strategy.scope():
        model, throughput = MODELS[options.model](), Throughput()
        optimizer = tf.keras.optimizers.Adam(0.001) if is_lecture else fused_adam(0.004)
        if options.way == "horovod" and not options.apart:
            import horovod.tensorflow.keras as hvd_keras

            optimizer = hvd_keras.DistributedOptimizer(optimizer)
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        steps_per_call = 1 if is_lecture else STEPS_PER_CALL
        model.compile(optimizer, loss, metrics=["accuracy", throughput.images], steps_per_execution=steps_per_call)
    # Each worker has the metrics of all; Keras would add them up over the workers once more, in every step.
    model.distribute_reduction_method = "first"

    core_share = CoreShare(lambda: processes.add_up(np.zeros(1)))
    how = {"epochs": 1 + options.epochs, "callbacks": [core_share, throughput], "verbose": 0}
    if is_lecture:
        model.fit(images, labels, batch_size=options.batch, **how)
    else:
        # A strategy divides the batch among its replicas; Horovod's ranks, and those apart, bring one each.
        fed = batches(images, labels, options.batch * replicas)
        model.fit(fed, steps_per_epoch=options.images // options.batch, **how)

    # A strategy has already counted the images of all its replicas.
    measured = np.array([(counted, counted / seconds) for counted, seconds in throughput.epochs])
    counted, rates = np.array(measured if replicas > 1 else processes.add_up(measured)).T
    shares = np.array(processes.add_up(np.array(core_share.epochs))) / processes.count
    if processes.index == 0:
        result = {name: getattr(options, name) for name in ("way", "model", "batch", "apart")} | {
            "replicas": max(replicas, processes.count),
            "cores": devices.cores(),
            "images": counted.astype(int).tolist(),
            "images_per_second": float(np.median(rates[1:])),
            "of_epochs": rates[1:].tolist(),
            "core_share": float(np.median(shares[1:])),
        }
        print(f"{options.way}, {result['replicas']}: {result['images_per_second']:,.0f} images/s", flush=True)
        if options.result:
            options.result.write_text(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
