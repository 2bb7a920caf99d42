"""Batch normalisation under Horovod: each rank with the statistics of its own images, and all with the same ones.

On a laptop, with mpirun where there is a core or a GPU for each rank, and under Slurm:

    distlab launch --with mpirun --workers 8 batch_norm.py -- --result result.json
    mpirun -np 8 --oversubscribe -bind-to none python batch_norm.py --result result.json
    srun --ntasks=8 --mpi=pmix python batch_norm.py --result result.json

It trains with each layer of LAYERS for `--steps` steps of SGD, from the same weights and with the same global batches,
and gives the statistics of the first step and of the end on every rank, and the weights. It takes seconds and writes no
checkpoints.
"""

import argparse
import json
import warnings
from pathlib import Path

from distlab import cluster_spec, data, large_batch  # before TensorFlow: it selects tf-keras

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

UNITS, CLASSES = 16, 10
RATE, MOMENTUM, EPSILON = 0.1, 0.9, 1e-3


class BatchNormalization(tf.keras.layers.Layer):
    """Normalises each unit by mean and variance over the batch: this rank's, or that of all ranks."""

    def __init__(self, is_synchronised: bool) -> None:
        super().__init__()
        self.is_synchronised = is_synchronised

    def build(self, shape: tf.TensorShape) -> None:
        """Scale and shift, which are trained, and the moving averages for the time after training."""
        units = shape[-1:]
        self.scale = self.add_weight(name="scale", shape=units, initializer="ones")
        self.shift = self.add_weight(name="shift", shape=units, initializer="zeros")
        self.moving_mean = self.add_weight(name="mean", shape=units, initializer="zeros", trainable=False)
        self.moving_variance = self.add_weight(name="variance", shape=units, initializer="ones", trainable=False)
        super().build(shape)

    def moments(self, inputs: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Mean and variance; means can be averaged over ranks, variances cannot, so the means of squares are."""
        means = tf.stack([tf.reduce_mean(inputs, axis=0), tf.reduce_mean(tf.square(inputs), axis=0)])
        if self.is_synchronised:
            means = hvd.allreduce(means)  # the tape goes through it: its gradient is an all-reduce, too
        return means[0], means[1] - tf.square(means[0])

    def call(self, inputs: tf.Tensor, training: bool = True) -> tf.Tensor:
        """As in training, always."""
        mean, variance = self.moments(inputs)
        self.moving_mean.assign(MOMENTUM * self.moving_mean + (1 - MOMENTUM) * mean)
        self.moving_variance.assign(MOMENTUM * self.moving_variance + (1 - MOMENTUM) * variance)
        return self.scale * (inputs - mean) / tf.sqrt(variance + EPSILON) + self.shift


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Train with batch normalisation, per rank and synchronised.")
    parser.add_argument("--dataset", choices=data.NAMES, default="digits")
    parser.add_argument("--per-replica-batch", type=int, default=4, help="images a rank takes in a step (default: 4)")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--result", type=Path, help="JSON file that rank 0 writes")
    cluster_spec.check_mpi_of_srun()
    return parser.parse_args(arguments)


LAYERS = {
    "per rank": lambda: BatchNormalization(is_synchronised=False),
    "synchronised": lambda: BatchNormalization(is_synchronised=True),
    "Horovod's layer": lambda: hvd.SyncBatchNormalization(momentum=MOMENTUM, epsilon=EPSILON),
}


def train(options: argparse.Namespace, name: str) -> dict:
    """A network with one hidden layer; the moving averages are lists with a row for each rank."""
    images, labels = data.load(options.dataset).train
    tf.keras.utils.set_random_seed(options.seed)
    images = images.reshape(len(images), -1)
    hidden, last = tf.keras.layers.Dense(UNITS, use_bias=False), tf.keras.layers.Dense(CLASSES)
    normalisation = LAYERS[name]()
    for layer, inputs in ((hidden, images.shape[1]), (normalisation, UNITS), (last, UNITS)):
        layer.build((None, inputs))
    trained = [*hidden.trainable_variables, *normalisation.trainable_variables, *last.trainable_variables]
    hvd.broadcast_variables([*trained, *normalisation.non_trainable_variables], root_rank=0)

    @tf.function(autograph=False)
    def update(own_images: tf.Tensor, own_labels: tf.Tensor) -> None:
        with tf.GradientTape() as tape:
            logits = last(tf.nn.relu(normalisation(hidden(own_images), training=True)))
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(own_labels, logits))
        gradients = hvd.grouped_allreduce(tape.gradient(loss, trained))
        for variable, gradient in zip(trained, gradients, strict=True):
            variable.assign_sub(RATE * gradient)

    first_means = []
    for step in range(options.steps):
        batch = large_batch.global_batches.numbers(
            step, len(images), options.per_replica_batch * hvd.size(), options.seed
        )
        own = large_batch.global_batches.share(batch, hvd.rank(), hvd.size())
        update(tf.constant(images[own]), tf.constant(labels[own]))
        if step == 0:  # the moving average began at 0
            first_means = of_all_ranks(normalisation.moving_mean / (1 - MOMENTUM))
    return {
        "first_means": first_means,
        "moving_means": of_all_ranks(normalisation.moving_mean),
        "moving_variances": of_all_ranks(normalisation.moving_variance),
        "weights": [variable.numpy().tolist() for variable in trained],
    }


def of_all_ranks(values: tf.Tensor) -> list[list[float]]:
    """One row for each rank."""
    return np.array(hvd.allgather(tf.expand_dims(values, 0))).tolist()


def main(arguments: list[str] | None = None) -> dict:
    """Train with each layer and give the result; rank 0 writes it."""
    options = parse(arguments)
    warnings.filterwarnings("ignore", message="`layer.updates`")  # Horovod's layer looks at it for TensorFlow 1
    hvd.init()
    result = {"ranks": hvd.size(), "global_batch": options.per_replica_batch * hvd.size()}
    result |= {name: train(options, name) for name in LAYERS}
    if hvd.rank() == 0:
        print(f"batch normalisation: trained {', '.join(LAYERS)}", flush=True)
        if options.result:
            options.result.write_text(json.dumps(result) + "\n")
    return result


if __name__ == "__main__":
    main()
