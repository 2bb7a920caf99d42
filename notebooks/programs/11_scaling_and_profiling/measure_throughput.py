"""Images per second of a network, trained in one of four ways; `make bench` compares them.

    python measure_throughput.py --way lecture --result result.json
    distlab launch --workers 2 measure_throughput.py -- --way multi_worker --model cnn
    horovodrun -np 2 --gloo python measure_throughput.py --way horovod --batch 1024 --cores 1

| way | what it is |
|---|---|
| lecture | NumPy arrays, batches of 32, one step per call from Python |
| ours | tf.data with few threads, batches of 128, 16 steps per call; a fused Adam |
| multi_worker, horovod | ours, 128 images for each worker or rank in a step |

The images are counted in the training step. The first epoch does not count; the result is the
median of the others.
"""

import argparse
import json
import time
from pathlib import Path

from distlab import data, devices, models  # before TensorFlow: it selects tf-keras

import numpy as np
import tensorflow as tf

WAYS = ("lecture", "ours", "multi_worker", "horovod")
MODELS = {"mlp": models.mlp, "cnn": models.cnn}


class Images(tf.keras.metrics.Sum):
    """How many images the steps of an epoch have worked on, counted inside them."""

    def update_state(self, labels: tf.Tensor, *others: object, **weights: object) -> None:
        """Add the size that this batch really has."""
        super().update_state(tf.shape(labels)[0])


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Images per second of one way to train.")
    parser.add_argument("--way", choices=WAYS, required=True)
    parser.add_argument("--model", choices=MODELS, default="mlp")
    parser.add_argument("--cores", type=int, default=0, help="of a process (default: all)")
    parser.add_argument("--batch", type=int, help="of a process (default: 128; lecture: 32)")
    parser.add_argument("--images", type=int, default=16384, help="of an epoch and a process")
    parser.add_argument("--epochs", type=int, default=5, help="that count (default: 5)")
    parser.add_argument("--result", type=Path, help="JSON file that the first process writes")
    options = parser.parse_args()
    options.batch = options.batch or (32 if options.way == "lecture" else 128)
    return options


def hold_cores(count: int, index: int) -> None:
    """Give the process of this index `count` cores of its own; 0 leaves it all."""
    if count:
        places, allowed = range(index * count, (index + 1) * count), devices.allowed_cores()
        devices.hold_cores({devices.core_of(place, allowed) for place in places})
        # With more threads than cores the threads only wait for one another.
        tf.config.threading.set_intra_op_parallelism_threads(count)
        tf.config.threading.set_inter_op_parallelism_threads(count)


def batches(images: np.ndarray, labels: np.ndarray, batch: int) -> tf.data.Dataset:
    """Without end; numbers are shuffled, then a whole batch is gathered at once."""
    with tf.device("CPU:0"):
        images, labels = tf.constant(images), tf.constant(labels)
    # No helper threads but prefetch's: they would compete with the training for the cores.
    lean, policy = tf.data.Options(), tf.data.experimental.AutoShardPolicy
    lean.autotune.enabled = False
    lean.experimental_optimization.apply_default_optimizations = False
    lean.experimental_distribute.auto_shard_policy = policy.OFF  # each shuffles its own
    order = tf.data.Dataset.range(len(images)).shuffle(len(images)).repeat().batch(batch)
    gathered = order.map(lambda chosen: (tf.gather(images, chosen), tf.gather(labels, chosen)))
    return gathered.prefetch(2).with_options(lean)


def main() -> None:
    """Train and measure; the first process writes the result."""
    options = parse()
    index, ranks, strategy = 0, 1, tf.distribute.get_strategy()
    if options.way == "horovod":
        import horovod.tensorflow as hvd
        import horovod.tensorflow.keras as hvd_keras

        hvd.init()
        index, ranks = hvd.rank(), hvd.size()
        hold_cores(options.cores, hvd.local_rank())
    elif options.way == "multi_worker":
        index = tf.distribute.cluster_resolver.TFConfigClusterResolver().task_id or 0
        hold_cores(options.cores, index)
        strategy = tf.distribute.MultiWorkerMirroredStrategy()
    tf.get_logger().setLevel("ERROR")
    digits = data.load("digits").train
    images, labels = (np.resize(part, (options.images, *part.shape[1:])) for part in digits)
    is_lecture = options.way == "lecture"
    with strategy.scope():
        model, images_done = MODELS[options.model](), Images("images", tf.int64)
        # One operation of the fused Adam updates an array of weights; the newer one's dozen.
        fused, adam = tf.keras.optimizers.legacy.Adam, tf.keras.optimizers.Adam
        optimizer = adam(0.001) if is_lecture else fused(0.004)
        if options.way == "horovod":
            optimizer = hvd_keras.DistributedOptimizer(optimizer)
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        metrics, per_call = ["accuracy", images_done], 1 if is_lecture else 16
        model.compile(optimizer, loss, metrics=metrics, steps_per_execution=per_call)
    # Each worker has the metrics of all; Keras would add them up once more, in every step.
    model.distribute_reduction_method = "first"
    starts, ends = [], []
    watch = tf.keras.callbacks.LambdaCallback(
        on_epoch_begin=lambda *_: starts.append(time.perf_counter()),
        on_epoch_end=lambda *_: ends.append(time.perf_counter()),
    )
    how = {"epochs": 1 + options.epochs, "callbacks": [watch], "verbose": 0}
    replicas = strategy.num_replicas_in_sync  # 1 under Horovod
    if is_lecture:
        run = model.fit(images, labels, batch_size=options.batch, **how)
    else:  # a strategy divides the batch among its replicas; Horovod's ranks bring one each
        fed = batches(images, labels, options.batch * replicas)
        run = model.fit(fed, steps_per_epoch=options.images // options.batch, **how)

    counts = np.array(run.history["images"])
    measured = np.transpose([counts, counts / np.subtract(ends, starts)])
    # A strategy has already counted the images of all its replicas.
    if options.way == "horovod":
        measured = hvd.allreduce(tf.constant(measured), op=hvd.Sum).numpy()
    if index == 0:
        rate = float(np.median(measured[1:, 1]))
        print(f"{options.way}, {replicas * ranks} processes: {rate:,.0f} images/s", flush=True)
        result = {"images_per_second": rate, "images": measured[:, 0].astype(int).tolist()}
        if options.result:
            result["cores"] = devices.cores()
            options.result.write_text(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
