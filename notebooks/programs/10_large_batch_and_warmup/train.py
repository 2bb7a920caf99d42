"""Train a small CNN with Horovod and Adam at a scaled learning rate, with and without warm-up.

On a laptop, 8 ranks on however many cores there are; with mpirun, where there is a core or a
GPU for each rank; and under Slurm:

    distlab launch --with mpirun --workers 8 train.py
    mpirun -np 8 --oversubscribe -bind-to none python train.py
    srun --ntasks=8 --mpi=pmix python train.py

Without warm-up the learning rate is RATE × the number of ranks from the first step on; with a
gradual one it rises from RATE to that in equal steps during WARM_UP_EPOCHS.

First, as a proof, 20 steps of SGD: the weights must be those of one process with the same
global batches, which depend on step and seed alone. Last, what `noise_scale.py` and
`batch_norm.py` measure: to start eight ranks takes longer than that.
"""

import argparse
import json
import time
from pathlib import Path

from distlab import cluster_spec, data, large_batch, models  # first: selects tf-keras

import batch_norm
import horovod.tensorflow as hvd
import noise_scale
import numpy as np
import tensorflow as tf

RATE, WARM_UP_EPOCHS, FILTERS, SEED = 0.01, 3, 8, 0  # the rate is for one rank
PROOF_STEPS, PROOF_RATE = 20, 0.05
batches = large_batch.global_batches


class Training:
    """This rank's model and images, and what all ranks do together."""

    def __init__(self, options: argparse.Namespace) -> None:
        train, (self.test_images, self.test_labels) = data.load(options.dataset)
        self.images, self.labels = (part[: options.images] for part in train)
        self.global_batch = options.per_replica_batch * hvd.size()
        self.epoch = batches.steps_per_epoch(len(self.images), self.global_batch)
        tf.keras.utils.set_random_seed(SEED + hvd.rank())
        self.model, self.optimizer = models.cnn(FILTERS), tf.keras.optimizers.Adam()
        self.optimizer.build(self.model.trainable_variables)
        hvd.broadcast_variables(self.model.variables, root_rank=0)
        self.first_weights = self.model.get_weights()

    def begin(self) -> None:
        """The first weights, those of rank 0, and an optimizer that remembers nothing."""
        self.model.set_weights(self.first_weights)
        for variable in self.optimizer.variables:
            variable.assign(tf.zeros_like(variable))

    def own_batch(self, step: int) -> tuple[tf.Tensor, tf.Tensor]:
        """This rank's share of the global batch of that step."""
        batch = batches.numbers(step, len(self.images), self.global_batch, SEED)
        own = batches.share(batch, hvd.rank(), hvd.size())
        return tf.constant(self.images[own]), tf.constant(self.labels[own])

    @tf.function(autograph=False)
    def loss_and_gradients(self, images: tf.Tensor, labels: tf.Tensor) -> tuple:
        """The means over the global batch, the same on every rank."""
        with tf.GradientTape() as tape:
            logits = self.model(images, training=True)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
            loss = tf.reduce_mean(losses)
        gradients = tape.gradient(loss, self.model.trainable_variables)
        mean_loss, *mean_gradients = hvd.grouped_allreduce([loss, *gradients])
        return mean_loss, mean_gradients

    @tf.function(autograph=False)  # op by op, Adam takes longer than the network
    def update(self, gradients: list[tf.Tensor]) -> None:
        """One step of Adam."""
        pairs = zip(gradients, self.model.trainable_variables, strict=True)
        self.optimizer.apply_gradients(pairs)

    def accuracy(self) -> float:
        """On the test images."""
        logits = self.model(self.test_images).numpy()
        return float(np.mean(logits.argmax(1) == self.test_labels))

    def prove(self) -> list:
        """The weights after some steps of SGD; it also traces what a training calls."""
        self.begin()
        for step in range(PROOF_STEPS):
            _, gradients = self.loss_and_gradients(*self.own_batch(step))
            pairs = zip(self.model.trainable_variables, gradients, strict=True)
            for variable, gradient in pairs:
                variable.assign_sub(PROOF_RATE * gradient)
        weights = [each.tolist() for each in self.model.get_weights()]
        self.update(gradients)
        return weights

    def train(self, name: str, epochs: int) -> dict:
        """With that schedule; loss, accuracy and seconds of training after each epoch."""
        rate_at = large_batch.schedules.by_name(name, RATE, hvd.size(), WARM_UP_EPOCHS)
        self.begin()
        history = {"loss": [], "accuracy": [], "seconds": []}
        for epoch in range(epochs):
            losses, start = [], time.perf_counter()
            for step in range(epoch * self.epoch, (epoch + 1) * self.epoch):
                loss, gradients = self.loss_and_gradients(*self.own_batch(step))
                self.optimizer.learning_rate = rate_at(step / self.epoch)
                self.update(gradients)
                losses.append(float(loss))
            history["seconds"].append(time.perf_counter() - start)
            history["loss"].append(float(np.mean(losses)))
            history["accuracy"].append(self.accuracy() if hvd.rank() == 0 else 0.0)
        return history


def main() -> None:
    """Prove and train, then let the same ranks do the rest; rank 0 writes all results."""
    parser = argparse.ArgumentParser(description="Train with and without warm-up.")
    parser.add_argument("--dataset", choices=data.NAMES, default="digits")
    parser.add_argument("--images", type=int, help="only the first of the training images")
    parser.add_argument("--per-replica-batch", type=int, default=12, help="images of a rank")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--result", type=Path, help="JSON file that rank 0 writes")
    options = parser.parse_args()
    cluster_spec.check_mpi_of_srun()
    hvd.init()
    training = Training(options)
    result = {"ranks": hvd.size(), "global_batch": training.global_batch}
    result |= {"steps_per_epoch": training.epoch, "weights": training.prove(), "runs": {}}
    for name in ("none", "gradual"):
        run = result["runs"][name] = training.train(name, options.epochs)
        if hvd.rank() == 0:
            reached = f"test accuracy {run['accuracy'][-1]:.2f}"
            print(f"{name}: loss {run['loss'][-1]:.2f}, {reached}", flush=True)
    result["noise_scale"] = noise_scale.record(options.dataset, steps=100)
    result["batch_norm"] = batch_norm.train_each(options.dataset)
    if hvd.rank() == 0 and options.result:
        options.result.write_text(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
