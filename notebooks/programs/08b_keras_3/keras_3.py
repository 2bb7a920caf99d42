"""Train the course's CNN with Keras 3 on several workers: the loop that works, and one all-reduce too many.

On a laptop, two workers; the launcher chooses the ports and sets TF_CONFIG:

    distlab launch --workers 2 keras_3.py -- --result result.json --weights weights.npz

Without TF_CONFIG it is one process. Each way starts from the same first weights and sees the same global batches:

| way | what the loop does with its gradients |
|---|---|
| as they are | gives them to the optimizer, whose `apply` adds up those of all workers |
| added before | adds them up itself first: one all-reduce too many |
| averaged before | averages them itself first, which `apply` then adds up |

Each is done with SGD and with Adam. `import keras` is Keras 3, whatever
TF_USE_LEGACY_KERAS says about `tf.keras`. Worker 0 writes the loss of each step of each way, and the
weights, one vector for each way. `serial` is what they are compared with.
"""

import argparse
import json
from pathlib import Path

from distlab import cluster_spec, data  # before TensorFlow

import keras
import numpy as np
import tensorflow as tf

WAYS = {"as they are": None, "added before": tf.distribute.ReduceOp.SUM, "averaged before": tf.distribute.ReduceOp.MEAN}
OPTIMIZERS = {"SGD": keras.optimizers.SGD, "Adam": keras.optimizers.Adam}
GLOBAL_BATCH_SIZE, SEED = 64, 8


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line; the same for all workers."""
    parser = argparse.ArgumentParser(description="Train with Keras 3 on several workers.")
    parser.add_argument("--dataset", choices=data.NAMES, default="digits")
    parser.add_argument("--steps", type=int, default=20, help="updates of the weights in each way (default: 20)")
    parser.add_argument("--sgd", type=float, default=0.1, help="SGD's learning rate (default: 0.1)")
    parser.add_argument("--adam", type=float, default=0.01, help="Adam's learning rate (default: 0.01)")
    parser.add_argument("--result", type=Path, help="JSON file that worker 0 writes")
    parser.add_argument("--weights", type=Path, help=".npz file that worker 0 writes")
    return parser.parse_args(arguments)


def make_model() -> keras.Model:
    """A small convolutional network for images of 28 by 28 pixels; its 10 outputs are logits."""
    layers = keras.layers
    return keras.Sequential(
        [
            layers.Input((28, 28)),
            layers.Reshape((28, 28, 1)),
            layers.Conv2D(8, 3, activation="relu"),
            layers.MaxPooling2D(4),
            layers.Flatten(),
            layers.Dense(10),
        ]
    )


def global_batches(options: argparse.Namespace) -> tf.data.Dataset:
    """The batches of all workers together; the strategy gives each worker its part."""
    images, labels = data.load(options.dataset).train
    index = np.arange(options.steps * GLOBAL_BATCH_SIZE) % (len(images) // GLOBAL_BATCH_SIZE * GLOBAL_BATCH_SIZE)
    sharding = tf.data.Options()
    sharding.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    samples = tf.data.Dataset.from_tensor_slices((images[index], labels[index]))
    return samples.batch(GLOBAL_BATCH_SIZE, drop_remainder=True).with_options(sharding)


def vector(model: keras.Model) -> np.ndarray:
    """All weights, one after the other."""
    return np.concatenate([array.ravel() for array in model.get_weights()])


def trained(
    strategy: tf.distribute.Strategy, options: argparse.Namespace, optimizer: str, before: tf.distribute.ReduceOp | None
) -> tuple[np.ndarray, list[float]]:
    """The weights after the loop, and the loss of each step."""
    keras.utils.set_random_seed(SEED)
    with strategy.scope():
        model = make_model()
        update = OPTIMIZERS[optimizer](getattr(options, optimizer.lower()))
        update.build(model.trainable_variables)
    loss_of_each = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction=None)

    def on_replica(images: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            losses = loss_of_each(labels, model(images, training=True))
            # Divided by the images of all workers: then the sum over the workers is the mean over the batch.
            loss = tf.nn.compute_average_loss(losses, global_batch_size=GLOBAL_BATCH_SIZE)
        gradients = tape.gradient(loss, model.trainable_variables)
        if before is not None:
            gradients = tf.distribute.get_replica_context().all_reduce(before, gradients)
        update.apply(gradients, model.trainable_variables)  # adds up the gradients of all replicas
        return loss

    @tf.function
    def step(images: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        return strategy.reduce("SUM", strategy.run(on_replica, args=(images, labels)), axis=None)

    # Endless: in an epoch that ends, an all-reduce before each step asks whether any worker has data left.
    batches = strategy.experimental_distribute_dataset(global_batches(options).repeat())
    losses = [float(step(*batch)) for _, batch in zip(range(options.steps), batches, strict=False)]
    return vector(model), losses


def serial(
    options: argparse.Namespace, optimizer: keras.optimizers.Optimizer, scale: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """The first and the last weights of `Model.fit` on one device, over the same batches; the loss times `scale`."""
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
    result: dict = {"workers": strategy.num_replicas_in_sync, "losses": {}}
    weights: dict[str, np.ndarray] = {}
    for optimizer in OPTIMIZERS:
        for way, before in WAYS.items():
            name = f"{optimizer}, {way}"
            weights[name], losses = trained(strategy, options, optimizer, before)
            result["losses"][name] = losses
            print(f"{name}: loss {losses[0]:.3f}, after {len(losses)} steps {losses[-1]:.3f}")
    if (strategy.cluster_resolver.task_id or 0) == 0:
        if options.result:
            options.result.write_text(json.dumps(result) + "\n")
        if options.weights:
            np.savez(options.weights, **weights)


if __name__ == "__main__":
    main()
