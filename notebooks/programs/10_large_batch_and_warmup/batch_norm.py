"""Batch normalisation under Horovod: with statistics of each rank's own images, and of all.

On a laptop, with mpirun where there is a core or a GPU for each rank, and under Slurm
(`train.py` calls `train_each` too):

    distlab launch --with mpirun --workers 8 batch_norm.py
    mpirun -np 8 --oversubscribe -bind-to none python batch_norm.py
    srun --ntasks=8 --mpi=pmix python batch_norm.py

It trains with each layer of LAYERS, from the same weights and with the same global batches,
and gives the means of the first step on every rank, and the weights.
"""

import warnings

from distlab import cluster_spec, data, large_batch  # before TensorFlow: it selects tf-keras

import horovod.tensorflow.keras as hvd
import tensorflow as tf
from horovod.tensorflow import (
    SyncBatchNormalization,
    allgather,
    allreduce,
    broadcast_variables,
)

UNITS, STEPS, SEED = 16, 20, 0
PER_REPLICA_BATCH, RATE, MOMENTUM, EPSILON = 4, 0.1, 0.9, 1e-3


class SynchronisedBatchNormalization(tf.keras.layers.Layer):
    """Normalises each unit over the batch of all ranks."""

    def build(self, shape: tf.TensorShape) -> None:
        """Scale and shift, which are trained; moving averages for the time after training."""
        zeros, ones = {"initializer": "zeros"}, {"initializer": "ones"}
        self.scale = self.add_weight("scale", shape[-1:], **ones)
        self.shift = self.add_weight("shift", shape[-1:], **zeros)
        self.moving_mean = self.add_weight("mean", shape[-1:], trainable=False, **zeros)
        self.moving_variance = self.add_weight("variance", shape[-1:], trainable=False, **ones)
        super().build(shape)

    def moments(self, inputs: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Mean and variance. Means can be averaged over ranks, so those of squares are."""
        squares = tf.square(inputs)
        own = tf.stack([tf.reduce_mean(inputs, axis=0), tf.reduce_mean(squares, axis=0)])
        means = allreduce(own)  # whose gradient is an all-reduce, too
        return means[0], means[1] - tf.square(means[0])

    def call(self, inputs: tf.Tensor, training: bool = True) -> tf.Tensor:
        """As in training, always."""
        mean, variance = self.moments(inputs)
        for moving, new in ((self.moving_mean, mean), (self.moving_variance, variance)):
            moving.assign(MOMENTUM * moving + (1 - MOMENTUM) * new)
        return self.scale * (inputs - mean) / tf.sqrt(variance + EPSILON) + self.shift


HOW = {"momentum": MOMENTUM, "epsilon": EPSILON}
LAYERS = {
    "per rank": lambda: tf.keras.layers.BatchNormalization(**HOW),
    "synchronised": SynchronisedBatchNormalization,
    "Horovod's layer": lambda: SyncBatchNormalization(**HOW),
}


def train(dataset: str, name: str) -> dict:
    """A network with one hidden layer; the means have a row for each rank."""
    images, labels = data.load(dataset).train
    tf.keras.utils.set_random_seed(SEED)
    layers, normalise = tf.keras.layers, LAYERS[name]()
    hidden = [layers.Flatten(), layers.Dense(UNITS, use_bias=False), normalise, layers.ReLU()]
    model = tf.keras.Sequential([layers.Input(images.shape[1:]), *hidden, layers.Dense(10)])
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    # In one message, so that timing does not change the order of the sums, and the rounding.
    optimizer = hvd.DistributedOptimizer(tf.keras.optimizers.SGD(RATE), num_groups=1)
    model.compile(optimizer, loss)
    broadcast_variables(model.variables, root_rank=0)
    batches = large_batch.global_batches
    for step in range(STEPS):
        batch = batches.numbers(step, len(images), PER_REPLICA_BATCH * hvd.size(), SEED)
        own = batches.share(batch, hvd.rank(), hvd.size())
        model.train_on_batch(images[own], labels[own])
        if step == 0:  # the moving average began at 0
            first_means = allgather(normalise.moving_mean[None] / (1 - MOMENTUM))
    weights = [variable.numpy().tolist() for variable in model.trainable_variables]
    return {"first_means": first_means.numpy().tolist(), "weights": weights}


def train_each(dataset: str) -> dict:
    """What each layer of LAYERS gives, and the size of a global batch."""
    warnings.filterwarnings("ignore", message="`layer.updates`")  # of Horovod's layer
    results = {name: train(dataset, name) for name in LAYERS}
    return results | {"global_batch": PER_REPLICA_BATCH * hvd.size()}


if __name__ == "__main__":
    cluster_spec.check_mpi_of_srun()
    hvd.init()
    result = train_each("digits")
    if hvd.rank() == 0:
        print(result)
