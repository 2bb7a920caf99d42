"""Train a CNN with Keras 3 on several workers, also with one all-reduce too many.

    distlab launch --workers 2 keras_3.py -- --result result.json --weights weights.npz

Each way starts from the same first weights and sees the same global batches:

| way | what the loop does with its gradients |
|---|---|
| as they are | gives them to the optimizer, whose `apply` adds up those of all workers |
| added before | adds them up itself first: one all-reduce too many |
| averaged before | averages them itself first, which `apply` then adds up |

Each is done with SGD and with Adam. Worker 0 writes the losses and the weights of each way;
`serial` is what they are compared with.
"""

import argparse
import json
from pathlib import Path

from distlab import cluster_spec, data  # before TensorFlow

import keras
import numpy as np
import tensorflow as tf

WAYS = {
    "as they are": None,
    "added before": tf.distribute.ReduceOp.SUM,
    "averaged before": tf.distribute.ReduceOp.MEAN,
}
OPTIMIZERS = {"SGD": keras.optimizers.SGD, "Adam": keras.optimizers.Adam}
RATES = {"SGD": 0.1, "Adam": 0.01}
BATCH, SEED = 64, 8  # images of all workers together


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line; the same for all workers."""
    parser = argparse.ArgumentParser(description="Train with Keras 3 on several workers.")
    parser.add_argument("--dataset", choices=data.NAMES, default="digits")
    parser.add_argument("--steps", type=int, default=20, help="updates of the weights")
    parser.add_argument("--result", type=Path, help="JSON file that worker 0 writes")
    parser.add_argument("--weights", type=Path, help=".npz file that worker 0 writes")
    return parser.parse_args(arguments)


def make_model() -> keras.Model:
    """A small convolutional network for images of 28 by 28 pixels; it gives 10 logits."""
    layers = keras.layers
    image = [layers.Input((28, 28)), layers.Reshape((28, 28, 1))]
    features = [layers.Conv2D(8, 3, activation="relu"), layers.MaxPooling2D(4)]
    return keras.Sequential([*image, *features, layers.Flatten(), layers.Dense(10)])


def global_batches(options: argparse.Namespace) -> tf.data.Dataset:
    """The batches of all workers together; the strategy gives each worker its part."""
    images, labels = data.load(options.dataset).train
    whole = len(images) // BATCH * BATCH
    index = np.arange(options.steps * BATCH) % whole
    sharding, policy = tf.data.Options(), tf.data.experimental.AutoShardPolicy.DATA
    sharding.experimental_distribute.auto_shard_policy = policy
    samples = tf.data.Dataset.from_tensor_slices((images[index], labels[index]))
    return samples.batch(BATCH, drop_remainder=True).with_options(sharding)


def vector(model: keras.Model) -> np.ndarray:
    """All weights, one after the other."""
    return np.concatenate([array.ravel() for array in model.get_weights()])


def trained(
    strategy: tf.distribute.Strategy,
    options: argparse.Namespace,
    optimizer: str,
    before: tf.distribute.ReduceOp | None,
) -> tuple[np.ndarray, list[float]]:
    """The weights after the loop, and the loss of each step."""
    keras.utils.set_random_seed(SEED)
    with strategy.scope():
        model = make_model()
        update = OPTIMIZERS[optimizer](RATES[optimizer])
        update.build(model.trainable_variables)
    loss_of_each = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction=None)

    def on_replica(images: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            losses = loss_of_each(labels, model(images, training=True))
            # Divided by the images of all workers, so that the sum over workers is the mean.
            loss = tf.nn.compute_average_loss(losses, global_batch_size=BATCH)
        gradients = tape.gradient(loss, model.trainable_variables)
        if before is not None:
            gradients = tf.distribute.get_replica_context().all_reduce(before, gradients)
        update.apply(gradients, model.trainable_variables)  # adds up those of all replicas
        return loss

    @tf.function
    def step(batch: tuple[tf.Tensor, tf.Tensor]) -> tf.Tensor:
        return strategy.reduce("SUM", strategy.run(on_replica, args=batch), axis=None)

    # Endless: else an all-reduce before each step asks whether any worker has data left.
    batches = iter(strategy.experimental_distribute_dataset(global_batches(options).repeat()))
    losses = [float(step(next(batches))) for _ in range(options.steps)]
    return vector(model), losses


def serial(
    options: argparse.Namespace, optimizer: keras.optimizers.Optimizer, scale: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """The first and the last weights of `fit` on one device, with the loss times `scale`."""
    keras.utils.set_random_seed(SEED)
    model = make_model()
    first = vector(model)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, lambda labels, logits: scale * loss(labels, logits))
    model.fit(global_batches(options), shuffle=False, verbose=0)
    return first, vector(model)


def main() -> None:
    """Train in all ways, and let worker 0 write what came out."""
    options = parse()
    with cluster_spec.interruptible():
        strategy = tf.distribute.MultiWorkerMirroredStrategy()
    tf.get_logger().setLevel("ERROR")  # no advice about collectives outside of a tf.function
    losses, weights = {}, {}
    for optimizer in OPTIMIZERS:
        for way, before in WAYS.items():
            name = f"{optimizer}, {way}"
            weights[name], losses[name] = trained(strategy, options, optimizer, before)
            first, *_, last = losses[name]
            print(f"{name}: loss {first:.3f}, after {options.steps} steps {last:.3f}")
    if strategy.cluster_resolver.task_id in (None, 0):
        if options.result:
            options.result.write_text(json.dumps({"losses": losses}) + "\n")
        if options.weights:
            np.savez(options.weights, **weights)


if __name__ == "__main__":
    main()
