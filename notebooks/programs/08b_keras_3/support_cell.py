"""One cell of the table "strategy × training API": train by SGD and write what came out.

    TF_USE_LEGACY_KERAS=0 python support_cell.py --strategy mirrored --api fit
    distlab launch --workers 2 support_cell.py -- --strategy multi-worker --api custom
    srun --nodes=2 python support_cell.py --strategy multi-worker --api custom

The first line is with Keras 3 (1: with tf-keras); under Slurm each task sets its TF_CONFIG, as
in notebook 15. `measure_support.py` runs every cell; Horovod's are in `horovod_cell.py`.
"""

import argparse
import json
import os
from pathlib import Path

from distlab import data, devices  # before TensorFlow: selects tf-keras, or by that variable

import numpy as np
import tensorflow as tf

GLOBAL_BATCH_SIZE, SAMPLES, LEARNING_RATE = 64, 1280, 0.1
Trained = tuple[tf.keras.Model, tf.keras.optimizers.Optimizer]


def samples() -> tuple[np.ndarray, ...]:
    """Images and labels of whole global batches."""
    return tuple(part[:SAMPLES] for part in data.load("digits").train)


def global_batches() -> tf.data.Dataset:
    """The data for the strategies: they divide each global batch among their replicas."""
    return tf.data.Dataset.from_tensor_slices(samples()).batch(GLOBAL_BATCH_SIZE).repeat()


def make_model() -> tf.keras.Model:
    """A small network with the same initial weights in every process."""
    tf.keras.utils.set_random_seed(1)
    layers = tf.keras.layers
    dense = [layers.Dense(16, activation="relu"), layers.Dense(10)]
    return tf.keras.Sequential([layers.Input((28, 28)), layers.Flatten(), *dense])


def make_loss(**options: str) -> tf.keras.losses.Loss:
    """The loss on logits."""
    return tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, **options)


def parameter_servers() -> tf.distribute.Strategy:
    """The chief's strategy; workers and parameter servers serve here until they are ended."""
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    job, index = resolver.task_type, resolver.task_id
    if job in ("worker", "ps"):
        tf.distribute.Server(resolver.cluster_spec(), job, index).join()
    return tf.distribute.ParameterServerStrategy(resolver)


def tpu() -> tf.distribute.Strategy:
    """On the TPU that the environment names."""
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver()
    tf.config.experimental_connect_to_cluster(resolver)
    tf.tpu.experimental.initialize_tpu_system(resolver)
    return tf.distribute.TPUStrategy(resolver)


STRATEGIES = {
    "default": tf.distribute.get_strategy,
    "one-device": lambda: tf.distribute.OneDeviceStrategy("CPU:0"),
    "mirrored": lambda: tf.distribute.MirroredStrategy(devices.at_least(2)),
    "central-storage": lambda: tf.distribute.experimental.CentralStorageStrategy(
        devices.at_least(2), "CPU:0"
    ),
    "multi-worker": tf.distribute.MultiWorkerMirroredStrategy,
    "parameter-server": parameter_servers,
    "tpu": tpu,
}


def fit(strategy: tf.distribute.Strategy, steps: int) -> Trained:
    """Train by `Model.fit`."""
    with strategy.scope():
        model = make_model()
        model.compile(tf.keras.optimizers.SGD(LEARNING_RATE), make_loss())
    model.fit(global_batches(), steps_per_epoch=steps, verbose=0)
    return model, model.optimizer


def custom(strategy: tf.distribute.Strategy, steps: int) -> Trained:
    """Train by a custom loop."""
    with strategy.scope():
        model = make_model()
        optimizer = tf.keras.optimizers.SGD(LEARNING_RATE)
    loss_of_each = make_loss(reduction="none")

    def train_on_replica(images: tf.Tensor, labels: tf.Tensor) -> None:
        with tf.GradientTape() as tape:
            losses = loss_of_each(labels, model(images, training=True))
            loss = tf.nn.compute_average_loss(losses, global_batch_size=GLOBAL_BATCH_SIZE)
        gradients = tape.gradient(loss, model.trainable_variables)
        # This sums the gradients over the replicas.
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


def write_result(trained: Trained, replicas: int, file: Path | None) -> None:
    """Print what there is to know of the trained model, and write it, with the weights."""
    model, optimizer = trained
    images, labels = samples()
    result = {"replicas": replicas, "updates": int(optimizer.iterations.numpy())}
    for name, network in {"loss_before": make_model(), "loss_after": model}.items():
        result[name] = float(make_loss()(labels, network(images)))
    print(result)
    if file:
        weights = [weight.tolist() for weight in model.get_weights()]
        file.write_text(json.dumps({**result, "weights": weights}) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Train with one strategy, by one API.")
    parser.add_argument("--strategy", choices=STRATEGIES, required=True)
    parser.add_argument("--api", choices=["fit", "custom"], required=True)
    parser.add_argument("--steps", type=int, default=20, help="updates of the weights")
    parser.add_argument("--result", type=Path, help="JSON file that the chief writes")
    options = parser.parse_args()
    strategy = STRATEGIES[options.strategy]()
    trained = {"fit": fit, "custom": custom}[options.api](strategy, options.steps)
    config = json.loads(os.environ.get("TF_CONFIG", "{}"))
    if config.get("task", {}).get("index", 0) == 0:
        replicas = strategy.num_replicas_in_sync
        if options.strategy == "parameter-server":
            replicas = len(config["cluster"]["worker"])
        write_result(trained, replicas, options.result)
