"""Train a small CNN with Horovod and Adam at a scaled learning rate, with and without warm-up.

On a laptop, 8 ranks on however many cores there are:

    distlab launch --with mpirun --workers 8 train.py -- --schedules none gradual --result result.json

With mpirun, where there is a core or a GPU for each rank, and under Slurm:

    mpirun -np 8 --oversubscribe -bind-to none python train.py --schedules none gradual --result result.json
    srun --ntasks=8 --mpi=pmix python train.py --schedules none gradual --result result.json

Each rank takes `--per-replica-batch` images in a step, the learning rate is `--learning-rate` × the number of ranks.

| schedule | learning rate |
|---|---|
| base | `--learning-rate`, not scaled |
| none | scaled from the first step on |
| constant | not scaled for `--warm-up-epochs`, then scaled |
| gradual | from the one to the other in equal steps during `--warm-up-epochs` |
| square root | `--learning-rate` × the root of the number of ranks |

First, as a proof, 20 steps of SGD: the weights must be those of one process with the same global batches, which depend
on step and seed alone. A run takes seconds and writes no checkpoints.
"""

import argparse
import json
import time
from pathlib import Path

from distlab import cluster_spec, data, large_batch, models  # before TensorFlow: it selects tf-keras

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

PROOF_STEPS, PROOF_RATE = 20, 0.05


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Train with a scaled learning rate, with and without warm-up.")
    parser.add_argument("--dataset", choices=data.NAMES, default="digits")
    parser.add_argument("--images", type=int, help="use only the first of the training images")
    parser.add_argument("--schedules", nargs="*", choices=large_batch.schedules.NAMES, default=["none", "gradual"])
    parser.add_argument("--per-replica-batch", type=int, default=12, help="images a rank takes in a step (default: 12)")
    parser.add_argument("--learning-rate", type=float, default=0.01, help="for one rank (default: 0.01)")
    parser.add_argument("--warm-up-epochs", type=float, default=3)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--filters", type=int, default=8, help="of the CNN's convolution (default: 8)")
    parser.add_argument("--seed", type=int, default=0, help="of the first weights and of the order of the images")
    parser.add_argument("--result", type=Path, help="JSON file that rank 0 writes")
    cluster_spec.check_mpi_of_srun()
    return parser.parse_args(arguments)


class Training:
    """This rank's model and images, and what all ranks do together."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        train, (self.test_images, self.test_labels) = data.load(options.dataset)
        self.images, self.labels = train.images[: options.images], train.labels[: options.images]
        self.global_batch = options.per_replica_batch * hvd.size()
        self.steps_per_epoch = large_batch.global_batches.steps_per_epoch(len(self.images), self.global_batch)
        tf.keras.utils.set_random_seed(options.seed + hvd.rank())
        self.model, self.optimizer = models.cnn(options.filters), tf.keras.optimizers.Adam()
        self.optimizer.build(self.model.trainable_variables)
        hvd.broadcast_variables(self.model.variables, root_rank=0)
        self.first_weights = self.model.get_weights()

    def begin(self) -> None:
        """The first weights, those of rank 0 everywhere, and an optimizer that remembers nothing."""
        self.model.set_weights(self.first_weights)
        for variable in self.optimizer.variables:
            variable.assign(tf.zeros_like(variable))

    def own_batch(self, step: int) -> tuple[tf.Tensor, tf.Tensor]:
        """This rank's share of the global batch of that step."""
        batch = large_batch.global_batches.numbers(step, len(self.images), self.global_batch, self.options.seed)
        own = large_batch.global_batches.share(batch, hvd.rank(), hvd.size())
        return tf.constant(self.images[own]), tf.constant(self.labels[own])

    @tf.function(autograph=False)
    def loss_and_gradients(self, images: tf.Tensor, labels: tf.Tensor) -> tuple[tf.Tensor, list]:
        """The means over the global batch, the same on every rank."""
        with tf.GradientTape() as tape:
            logits = self.model(images, training=True)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
        gradients = tape.gradient(loss, self.model.trainable_variables)
        mean_loss, *mean_gradients = hvd.grouped_allreduce([loss, *gradients])
        return mean_loss, mean_gradients

    @tf.function(autograph=False)  # op by op, Adam takes longer than the network
    def update(self, gradients: list[tf.Tensor]) -> None:
        """One step of Adam."""
        self.optimizer.apply_gradients(zip(gradients, self.model.trainable_variables, strict=True))

    def accuracy(self) -> float:
        """On the test images."""
        return float(np.mean(self.model(self.test_images).numpy().argmax(1) == self.test_labels))

    def prove(self) -> list:
        """The weights after some steps of SGD; also traces what a training calls, so that none is timed with it."""
        self.begin()
        for step in range(PROOF_STEPS):
            _, gradients = self.loss_and_gradients(*self.own_batch(step))
            for variable, gradient in zip(self.model.trainable_variables, gradients, strict=True):
                variable.assign_sub(PROOF_RATE * gradient)
        weights = [each.tolist() for each in self.model.get_weights()]
        self.update(gradients)
        return weights

    def train(self, name: str) -> dict:
        """One run with that schedule; loss, test accuracy and seconds of training after each epoch."""
        options = self.options
        rate_at = large_batch.schedules.by_name(name, options.learning_rate, hvd.size(), options.warm_up_epochs)
        self.begin()
        history = {"loss": [], "accuracy": [], "seconds": []}
        for epoch in range(options.epochs):
            losses, start = [], time.perf_counter()
            for step in range(epoch * self.steps_per_epoch, (epoch + 1) * self.steps_per_epoch):
                loss, gradients = self.loss_and_gradients(*self.own_batch(step))
                self.optimizer.learning_rate = rate_at(step / self.steps_per_epoch)
                self.update(gradients)
                losses.append(float(loss))
            history["seconds"].append(time.perf_counter() - start)
            history["loss"].append(float(np.mean(losses)))
            history["accuracy"].append(self.accuracy() if hvd.rank() == 0 else 0.0)
        return history


def main(arguments: list[str] | None = None) -> dict:
    """Prove, train with each schedule, and give the result; rank 0 writes it."""
    options = parse(arguments)
    hvd.init()
    training = Training(options)
    result = {"ranks": hvd.size(), "global_batch": training.global_batch, "steps_per_epoch": training.steps_per_epoch}
    result |= {"weights": training.prove(), "runs": {}}
    for name in options.schedules:
        run = result["runs"][name] = training.train(name)
        if hvd.rank() == 0:
            print(f"{name}: loss {run['loss'][-1]:.2f}, test accuracy {run['accuracy'][-1]:.2f}", flush=True)
    if hvd.rank() == 0 and options.result:
        options.result.write_text(json.dumps(result) + "\n")
    return result


if __name__ == "__main__":
    main()
