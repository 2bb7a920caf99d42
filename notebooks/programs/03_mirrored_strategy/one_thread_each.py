"""How long a training takes on one device and on several, if each has a thread and a core.

    python one_thread_each.py --devices 2 --result result.json

A GPU is a processor of its own. Logical CPU devices come close to that if an operation may use
only one thread, and if the run with one device is held on one core. The result has the elapsed
seconds for the same number of images, with 1 and with N devices.
"""

import argparse
import json
from collections.abc import Callable, Mapping
from pathlib import Path

from distlab import devices, metrics  # before TensorFlow: it selects tf-keras

import numpy as np
import tensorflow as tf

IMAGES = 2048
Strategies, Times = Mapping[int, tf.distribute.Strategy], dict[int, metrics.Seconds]


def training_step(strategy: tf.distribute.Strategy, global_batch: int) -> Callable:
    """A step of a network with enough to compute for each weight that is exchanged."""
    with strategy.scope():
        hidden = [tf.keras.layers.Dense(512, activation="relu") for _ in range(4)]
        layers = [tf.keras.layers.Input((784,)), *hidden, tf.keras.layers.Dense(10)]
        model, optimizer = tf.keras.Sequential(layers), tf.keras.optimizers.SGD(0.01)
        optimizer.build(model.trainable_variables)
    loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")

    def replica(images: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(loss_of(labels, model(images, training=True))) / global_batch
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    @tf.function
    def step(batch: tuple[tf.Tensor, tf.Tensor]) -> tf.Tensor:
        return strategy.reduce("SUM", strategy.run(replica, batch), axis=None)

    return step


def images_of(largest: int) -> int:
    """About IMAGES, in whole steps of the largest global batch."""
    return max(1, IMAGES // largest) * largest


def compared(strategies: Strategies, per_replica: int = 512, hold: bool = False) -> Times:
    """Seconds by number of devices; `hold` lets each run use as many cores as devices."""
    cores = devices.allowed_cores()

    def training(count: int, strategy: tf.distribute.Strategy) -> Callable[[], None]:
        size = count * per_replica
        images = np.random.default_rng(1).random((size, 784), np.float32)
        data = tf.data.Dataset.from_tensor_slices((images, np.zeros(size, np.int64)))
        [batch] = strategy.experimental_distribute_dataset(data.batch(size))  # in memory
        step = training_step(strategy, size)

        def train() -> None:
            if hold:
                devices.hold_cores(cores[:count])
            for _ in range(images_of(max(strategies) * per_replica) // size):
                loss = step(batch)
            loss.numpy()  # waits for the last step

        return train

    return metrics.compare({count: training(count, strategies[count]) for count in strategies})


def main() -> None:
    """Give every device one thread, and compare."""
    parser = argparse.ArgumentParser(description="One device against several, a thread each.")
    parser.add_argument("--devices", type=int, default=2)
    parser.add_argument("--result", type=Path, help="JSON file that is written")
    options = parser.parse_args()
    tf.config.set_visible_devices([], "GPU")  # one kind of device: the processor
    tf.config.threading.set_intra_op_parallelism_threads(1)  # of one operation
    tf.config.threading.set_inter_op_parallelism_threads(options.devices)  # at the same time
    devices.divide_processor(options.devices)
    mirrored = tf.distribute.MirroredStrategy([f"CPU:{n}" for n in range(options.devices)])
    seconds = compared({1: tf.distribute.get_strategy(), options.devices: mirrored}, hold=True)
    for count, times in seconds.items():
        rate = images_of(options.devices * 512) / times.elapsed
        print(f"devices: {count}, images per second: {rate:,.0f}")
    if options.result:
        elapsed = {count: times.elapsed for count, times in seconds.items()}
        options.result.write_text(json.dumps(elapsed))


if __name__ == "__main__":
    main()
