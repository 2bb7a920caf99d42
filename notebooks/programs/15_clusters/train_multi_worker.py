"""Train with MultiWorkerMirroredStrategy: one task per node, the cluster read from Slurm.

On the cluster of this machine, as a job under Slurm, and on a laptop:

    distlab cluster run -- srun --nodes=3 --kill-on-bad-exit=1 python train_multi_worker.py
    sbatch --nodes=3 slurm/batch.sbatch train_multi_worker.py --weights weights.npz
    distlab launch --workers 2 train_multi_worker.py

Without Slurm, each process gets its TF_CONFIG from who starts it, as pbs/batch.pbs does by
ssh. With neither, it is one process.
"""

import argparse
import os

from distlab import cluster_spec  # before TensorFlow: distlab selects tf-keras

import network
import numpy as np
import tensorflow as tf


def train(options: argparse.Namespace, name: str) -> tuple[float, list[np.ndarray]]:
    """Train as TF_CONFIG says, and report under that name; the last loss and the weights."""
    with cluster_spec.interruptible():
        strategy = tf.distribute.MultiWorkerMirroredStrategy()
    workers = max(1, len(strategy.cluster_resolver.cluster_spec().as_dict().get("worker", [])))
    devices = strategy.num_replicas_in_sync // workers  # of each worker
    with strategy.scope():
        hidden = tf.keras.layers.Dense(options.units, activation="relu")
        layers = [hidden, tf.keras.layers.Dense(10)]
        model = tf.keras.Sequential([tf.keras.layers.Input((network.INPUTS,)), *layers])
        model.set_weights(network.first_weights(options.units))
        optimizer = tf.keras.optimizers.SGD(options.learning_rate, momentum=network.MOMENTUM)
        optimizer.build(model.trainable_variables)

    def replica_step(images: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            logits = model(images, training=True)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
            loss = tf.nn.compute_average_loss(losses, global_batch_size=options.batch)
        gradients = tape.gradient(loss, model.trainable_variables)
        pairs = zip(gradients, model.trainable_variables, strict=True)
        optimizer.apply_gradients(pairs)  # sums
        return loss

    @tf.function(autograph=False)  # nothing to translate
    def step(*batch: tf.Tensor) -> tf.Tensor:
        return strategy.reduce("SUM", strategy.run(replica_step, args=batch), axis=None)

    def by_device(array: np.ndarray) -> tf.distribute.DistributedValues:
        """Each device of this worker gets a part of the worker's batch."""

        def part(context: tf.distribute.experimental.ValueContext) -> tf.Tensor:
            return tf.constant(array[context.replica_id_in_sync_group % devices :: devices])

        return strategy.experimental_distribute_values_from_function(part)

    batches = network.Batches(options, strategy.cluster_resolver.task_id or 0, workers)
    for images, labels in batches:
        loss = float(step(by_device(images), by_device(labels)))
    network.report(batches, name, loss, model.get_weights())
    return loss, model.get_weights()


def main() -> None:
    """Train in the cluster of Slurm, or that of TF_CONFIG."""
    options = network.parser("Train with MultiWorkerMirroredStrategy.").parse_args()
    if "SLURM_PROCID" in os.environ and "TF_CONFIG" not in os.environ:
        os.environ["TF_CONFIG"] = cluster_spec.from_slurm()
    train(options, "MultiWorkerMirroredStrategy")


if __name__ == "__main__":
    main()
