"""One cell of the table "strategy × training API": train some steps of SGD and write what came out.

On a laptop, the strategies of one process, here with both versions of Keras:

    TF_USE_LEGACY_KERAS=1 python support_cell.py --strategy mirrored --api fit --result legacy.json
    TF_USE_LEGACY_KERAS=0 python support_cell.py --strategy mirrored --api fit --result keras_3.json

Several processes: by the course's launcher, or by hand with TF_CONFIG set for each process, as in notebook 07:

    distlab launch --workers 2 support_cell.py -- --strategy multi-worker --api fit
    distlab launch --workers 2 --parameter-servers 1 support_cell.py -- --strategy parameter-server --api custom

Under Slurm, in a batch script that sets TF_CONFIG for each task, as in notebook 15:

    srun --nodes=2 --ntasks-per-node=1 python support_cell.py --strategy multi-worker --api custom

mpirun has no part in it: these processes find each other by TF_CONFIG. (Horovod's cells: `horovod_cell.py`.)

A strategy that fails ends the program with its own error. The chief alone writes the result: how many replicas trained,
the updates that the optimizer counted, the loss before and after, and the weights. `measure_support.py` runs every
cell and compares its weights with those of the default strategy.
"""

import argparse
import json
import os
from pathlib import Path

from distlab import data, devices  # before TensorFlow: selects tf-keras unless TF_USE_LEGACY_KERAS is 0

# isort: split
import numpy as np
import tensorflow as tf

GLOBAL_BATCH_SIZE = 64
STRATEGIES = ["default", "one-device", "mirrored", "central-storage", "multi-worker", "parameter-server", "tpu"]
SAMPLES = 20 * GLOBAL_BATCH_SIZE
LEARNING_RATE = 0.1
Trained = tuple[tf.keras.Model, tf.keras.optimizers.Optimizer]


def samples() -> tuple[np.ndarray, np.ndarray]:
    """Images and labels of whole global batches."""
    images, labels = data.load("digits").train
    return images[:SAMPLES], labels[:SAMPLES]


def global_batches() -> tf.data.Dataset:
    """The data for the strategies: they divide each global batch among their replicas."""
    return tf.data.Dataset.from_tensor_slices(samples()).batch(GLOBAL_BATCH_SIZE).repeat()


def make_model() -> tf.keras.Model:
    """A small network with the same initial weights in every process."""
    tf.keras.utils.set_random_seed(1)
    layers = tf.keras.layers
    return tf.keras.Sequential(
        [layers.Input((28, 28)), layers.Flatten(), layers.Dense(16, activation="relu"), layers.Dense(10)]
    )


def make_loss(**options: str) -> tf.keras.losses.Loss:
    """The loss on logits."""
    return tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, **options)


def make_strategy(name: str) -> tf.distribute.Strategy:
    """The strategy. A worker or parameter server of ParameterServerStrategy stays here and serves until it is ended."""
    if name == "one-device":
        return tf.distribute.OneDeviceStrategy("CPU:0")
    if name == "mirrored":
        return tf.distribute.MirroredStrategy(devices.at_least(2))
    if name == "central-storage":
        return tf.distribute.experimental.CentralStorageStrategy(devices.at_least(2), parameter_device="CPU:0")
    if name == "multi-worker":
        return tf.distribute.MultiWorkerMirroredStrategy()
    if name == "parameter-server":
        resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
        task, index = resolver.task_type, resolver.task_id
        if task in ("worker", "ps"):
            tf.distribute.Server(resolver.cluster_spec(), job_name=task, task_index=index).join()
        return tf.distribute.ParameterServerStrategy(resolver)
    if name == "tpu":
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver()
        tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
        return tf.distribute.TPUStrategy(resolver)
    return tf.distribute.get_strategy()


def fit(strategy: tf.distribute.Strategy, steps: int) -> Trained:
    """Train by `Model.fit`."""
    with strategy.scope():
        model = make_model()
        optimizer = tf.keras.optimizers.SGD(LEARNING_RATE)
        model.compile(optimizer, make_loss())
    model.fit(global_batches(), steps_per_epoch=steps, verbose=0)
    return model, optimizer


def custom(strategy: tf.distribute.Strategy, steps: int) -> Trained:
    """Train by a custom loop; `strategy.run` calls `train_on_replica` on every replica."""
    with strategy.scope():
        model = make_model()
        optimizer = tf.keras.optimizers.SGD(LEARNING_RATE)
    loss_of_each = make_loss(reduction="none")

    def train_on_replica(images: tf.Tensor, labels: tf.Tensor) -> None:
        with tf.GradientTape() as tape:
            losses = loss_of_each(labels, model(images, training=True))
            loss = tf.nn.compute_average_loss(losses, global_batch_size=GLOBAL_BATCH_SIZE)
        gradients = tape.gradient(loss, model.trainable_variables)
        # This sums the gradients over the replicas; another sum before it would count them twice.
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))

    @tf.function
    def step(batches: tf.data.Iterator) -> None:
        strategy.run(train_on_replica, args=next(batches))

    if isinstance(strategy, tf.distribute.ParameterServerStrategy):
        coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
        batches = iter(coordinator.create_per_worker_dataset(global_batches()))
        for _ in range(steps):
            coordinator.schedule(step, args=(batches,))
        coordinator.join()
    else:
        batches = iter(strategy.experimental_distribute_dataset(global_batches()))
        for _ in range(steps):
            step(batches)
    return model, optimizer


def loss_of(model: tf.keras.Model) -> float:
    """The mean loss over all samples, computed outside the strategy."""
    images, labels = samples()
    return float(make_loss()(labels, model(images)))


def write_result(
    model: tf.keras.Model, optimizer: tf.keras.optimizers.Optimizer, replicas: int, file: Path | None
) -> None:
    """Print what there is to know of the trained model, and write it with the weights as JSON."""
    result = {
        "replicas": replicas,
        "updates": int(optimizer.iterations.numpy()),
        "loss_before": loss_of(make_model()),
        "loss_after": loss_of(model),
        "weights": [weight.tolist() for weight in model.get_weights()],
    }
    print(", ".join(f"{name} {value}" for name, value in result.items() if name != "weights"))
    if file:
        file.write_text(json.dumps(result) + "\n")


def main() -> None:
    """Train as asked; the chief writes the result."""
    parser = argparse.ArgumentParser(description="Train with one strategy, by one API.")
    parser.add_argument("--strategy", choices=STRATEGIES, required=True)
    parser.add_argument("--api", choices=["fit", "custom"], required=True)
    parser.add_argument("--steps", type=int, default=20, help="updates of the weights (default: 20)")
    parser.add_argument("--result", type=Path, help="JSON file that the chief writes")
    options = parser.parse_args()
    strategy = make_strategy(options.strategy)
    model, optimizer = {"fit": fit, "custom": custom}[options.api](strategy, options.steps)
    config = json.loads(os.environ.get("TF_CONFIG", "{}"))
    if config.get("task", {}).get("index", 0) == 0:  # workers of parameter servers never come here
        is_synchronous = options.strategy != "parameter-server"
        replicas = strategy.num_replicas_in_sync if is_synchronous else len(config["cluster"]["worker"])
        write_result(model, optimizer, replicas, options.result)


if __name__ == "__main__":
    main()
