"""Images per second of the lecture's network (784 – 128 – 10), trained in one of several ways.

On a laptop:

    python measure_throughput.py --way lecture --result result.json
    python measure_throughput.py --way mirrored --devices 2 --result result.json
    distlab launch --workers 2 measure_throughput.py -- --way multi_worker --result result.json
    horovodrun -np 2 --gloo python measure_throughput.py --way horovod --result result.json
    mpirun -np 2 python measure_throughput.py --way horovod --result result.json

Under Slurm, in a batch script or after `salloc --nodes=2 --ntasks-per-node=1`:

    srun --mpi=pmix python measure_throughput.py --way horovod --result result.json

| way | what it is |
|---|---|
| lecture | NumPy arrays, batches of 32, one step per call from Python |
| ours | the fast program of notebook 02: tf.data with few threads, batches of 128, 16 steps per call |
| mirrored, multi_worker, horovod | ours, 128 images for each device, worker or rank in a step |

The images are counted in the training step. The first epoch does not count; the result is the median of the others.
"""

import argparse
import json
import os
from pathlib import Path

from distlab import data, devices, models  # before TensorFlow: it selects tf-keras

# isort: split
import numpy as np
import tensorflow as tf
from throughput import Throughput

WAYS = ("lecture", "ours", "mirrored", "multi_worker", "horovod")
BATCH, STEPS_PER_CALL = 128, 16


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Images per second of one network, trained in one of several ways.")
    parser.add_argument("--way", choices=WAYS, required=True)
    parser.add_argument("--devices", type=int, default=1, help="of one process, for --way mirrored (default: 1)")
    parser.add_argument("--dataset", choices=data.NAMES, default="digits")
    parser.add_argument("--images", type=int, default=16384, help="of an epoch and a device; a small set is repeated")
    parser.add_argument("--epochs", type=int, default=5, help="that count (default: 5)")
    parser.add_argument("--result", type=Path, help="JSON file that the first process writes")
    options = parser.parse_args()
    if options.images < BATCH or options.epochs < 1:
        parser.error(f"--images is at least {BATCH}, one batch, and --epochs at least 1")
    return options


def prepare(options: argparse.Namespace) -> tuple[tf.distribute.Strategy, int, int]:
    """The strategy, how many replicas there are in all, and which process this is."""
    if options.way == "horovod":
        import horovod.tensorflow as hvd

        hvd.init()
        if gpus := tf.config.list_physical_devices("GPU"):
            tf.config.set_visible_devices(gpus[hvd.local_rank() % len(gpus)], "GPU")
        return tf.distribute.get_strategy(), hvd.size(), hvd.rank()
    if options.way == "multi_worker":
        strategy = tf.distribute.MultiWorkerMirroredStrategy()
        return strategy, strategy.num_replicas_in_sync, strategy.cluster_resolver.task_id or 0
    if options.way == "mirrored":
        strategy = tf.distribute.MirroredStrategy(devices.at_least(options.devices))
        return strategy, strategy.num_replicas_in_sync, 0
    return tf.distribute.get_strategy(), 1, 0


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


def main() -> None:
    """Train and measure; the first process writes the result."""
    options = parse()
    if options.way != "multi_worker":
        os.environ.pop("TF_CONFIG", None)
    strategy, replicas, index = prepare(options)
    tf.get_logger().setLevel("ERROR")
    images, labels = (
        np.resize(array, (options.images, *array.shape[1:])) for array in data.load(options.dataset).train
    )

    is_lecture = options.way == "lecture"
    with strategy.scope():
        model, throughput = models.mlp(), Throughput()
        optimizer = tf.keras.optimizers.Adam(0.001 if is_lecture else 0.004)
        if options.way == "horovod":
            import horovod.tensorflow.keras as hvd_keras

            optimizer = hvd_keras.DistributedOptimizer(optimizer)
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        steps_per_call = 1 if is_lecture else STEPS_PER_CALL
        model.compile(optimizer, loss, metrics=["accuracy", throughput.images], steps_per_execution=steps_per_call)

    how = {"epochs": 1 + options.epochs, "callbacks": [throughput], "verbose": 0}
    if is_lecture:
        model.fit(images, labels, batch_size=32, **how)
    else:
        # A strategy divides the batch among its replicas; Horovod's ranks bring one each.
        batch = BATCH if options.way == "horovod" else BATCH * replicas
        model.fit(batches(images, labels, batch), steps_per_epoch=options.images // BATCH, **how)

    # Horovod counts the images of one rank, a strategy those of all replicas.
    factor = replicas if options.way == "horovod" else 1
    rates = [factor * counted / seconds for counted, seconds in throughput.epochs[1:]]
    if index == 0:
        result = {
            "way": options.way,
            "replicas": replicas,
            "images": [factor * counted for counted, _ in throughput.epochs],
            "images_per_second": float(np.median(rates)),
        }
        print(f"{options.way}, {replicas}: {result['images_per_second']:,.0f} images/s")
        if options.result:
            options.result.write_text(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
