"""Seconds that a training takes on one device and on several, where each device has a thread and a core of its own.

    python one_thread_each.py --devices 2 --result result.json

A GPU is a processor of its own. Logical CPU devices come close to that if an operation may use only one thread, and if
the run with one device is held on one core. `result.json` has, for 1 and for N devices, the elapsed seconds.
"""

import argparse
import json
from collections.abc import Callable, Mapping
from pathlib import Path

from distlab import devices, metrics  # before TensorFlow: it selects tf-keras

# isort: split
import numpy as np
import tensorflow as tf

IMAGES, PER_REPLICA = 4096, 256


def network() -> tf.keras.Model:
    """Enough to compute for each weight: four hidden layers of 512 units."""
    hidden = [tf.keras.layers.Dense(512, activation="relu") for _ in range(4)]
    model = tf.keras.Sequential([*hidden, tf.keras.layers.Dense(10)])
    model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


def training(count: int, strategy: tf.distribute.Strategy, per_replica: int, hold: bool) -> Callable[[], None]:
    """Steps with `IMAGES` images in all, on one batch that is already in memory."""
    with strategy.scope():
        model = network()
    images = np.random.default_rng(1).random((count * per_replica, 784), np.float32)
    labels, cores = np.zeros(len(images), np.int64), devices.allowed_cores()
    batches = tf.data.Dataset.from_tensor_slices((images, labels)).batch(len(images))
    batch = next(iter(strategy.experimental_distribute_dataset(batches)))

    @tf.function
    def step(batch: tuple[tf.Tensor, tf.Tensor]) -> tuple[tf.Tensor, ...]:
        return strategy.experimental_local_results(strategy.run(model.train_step, args=(batch,))["loss"])

    def train() -> None:
        if hold:
            devices.hold_cores(cores[:count])
        for _ in range(IMAGES // len(images)):
            losses = step(batch)
        [loss.numpy() for loss in losses]  # waits for the last step

    return train


def compared(
    strategies: Mapping[int, tf.distribute.Strategy], per_replica: int = PER_REPLICA, hold: bool = False
) -> dict[int, metrics.Seconds]:
    """Seconds by number of devices; `hold` lets each run use as many cores as it has devices."""
    return metrics.compare({count: training(count, used, per_replica, hold) for count, used in strategies.items()})


def main() -> None:
    """Give every device one thread, and compare."""
    parser = argparse.ArgumentParser(description="One device against several, one thread each.")
    parser.add_argument("--devices", type=int, default=2)
    parser.add_argument("--result", type=Path, help="JSON file that is written")
    options = parser.parse_args()
    tf.config.threading.set_intra_op_parallelism_threads(1)  # of one operation
    tf.config.threading.set_inter_op_parallelism_threads(options.devices)  # operations at the same time
    devices.divide_processor(options.devices)
    names = [f"CPU:{number}" for number in range(options.devices)]
    strategies = {1: tf.distribute.get_strategy(), options.devices: tf.distribute.MirroredStrategy(names)}
    elapsed = {count: seconds.elapsed for count, seconds in compared(strategies, hold=True).items()}
    print(
        "; ".join(f"devices: {count}, images per second: {IMAGES / seconds:,.0f}" for count, seconds in elapsed.items())
    )
    if options.result:
        options.result.write_text(json.dumps(elapsed))


if __name__ == "__main__":
    main()
