"""Train in one process with the global batches of many ranks: the same weights, no ranks.

    training = one_process.OneProcess("digits", lambda: models.cnn(8))
    rate_at = schedules.by_name("gradual", 0.01, 8, 3)
    history = training.run(rate_at, global_batch=96, epochs=6, seed=0)

A module for notebook 10. The schedules are those of `train.py`, which runs on real ranks. That
both give the same weights is shown in the notebook.
"""

import time
from collections.abc import Callable

from distlab import data, metrics, models  # first: selects tf-keras
from distlab.large_batch.global_batches import numbers, steps_per_epoch
from distlab.large_batch.schedules import Schedule, by_name, without_warm_up

import numpy as np
import tensorflow as tf

AT_CHANCE = 0.2
"""A run whose test accuracy ends below this has not learnt: ten classes by chance give 0.1."""
RANKS, RATE, WARM_UP_EPOCHS = 8, 0.01, 3
"""Of the tutorial's experiment."""


class OneProcess:
    """A network, an optimizer and a data set; each run begins with new first weights."""

    def __init__(
        self,
        dataset: str,
        network: Callable[[], tf.keras.Model] = models.cnn,
        optimizer: tf.keras.optimizers.Optimizer | None = None,
        images: int | None = None,
    ) -> None:
        """Adam without an `optimizer`; the first `images` of the training set, or all."""
        train, test = data.load(dataset)
        self.images, self.labels = (tf.constant(part[:images]) for part in train)
        self.test_images, self.test_labels = tf.constant(test.images), test.labels
        self.network, self.model = network, network()
        self.first_weights: dict[int, list[np.ndarray]] = {}
        self.optimizer = optimizer or tf.keras.optimizers.Adam()
        self.optimizer.build(self.model.trainable_variables)

    def begin(self, seed: int) -> None:
        """New first weights, and an optimizer that remembers nothing."""
        if seed not in self.first_weights:
            tf.keras.utils.set_random_seed(seed)
            self.first_weights[seed] = self.network().get_weights()
        self.model.set_weights(self.first_weights[seed])
        for variable in self.optimizer.variables:
            variable.assign(tf.zeros_like(variable))

    @tf.function(reduce_retracing=True)
    def step(self, chosen: tf.Tensor, rate: tf.Tensor) -> tf.Tensor:
        """One update by the mean over these images; gives the loss before it."""
        images, labels = tf.gather(self.images, chosen), tf.gather(self.labels, chosen)
        with tf.GradientTape() as tape:
            logits = self.model(images, training=True)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
            loss = tf.reduce_mean(losses)
        gradients = tape.gradient(loss, self.model.trainable_variables)
        self.optimizer.learning_rate.assign(rate)
        pairs = zip(gradients, self.model.trainable_variables, strict=True)
        self.optimizer.apply_gradients(pairs)
        return loss

    def steps(
        self, first: int, count: int, global_batch: int, seed: int, rate_at: Schedule
    ) -> list[float]:
        """Some steps of a run; gives their losses."""
        size, steps = len(self.images), range(first, first + count)
        per_epoch = steps_per_epoch(size, global_batch)
        batches = np.stack([numbers(step, size, global_batch, seed) for step in steps])
        rates = np.array([rate_at(step / per_epoch) for step in steps], np.float32)
        return self.all_steps(tf.constant(batches), tf.constant(rates)).numpy().tolist()

    @tf.function(reduce_retracing=True)
    def all_steps(self, batches: tf.Tensor, rates: tf.Tensor) -> tf.Tensor:
        """A step for each row of image numbers: a call of its own takes as long as a step."""
        losses = tf.TensorArray(tf.float32, tf.size(rates))
        for number in tf.range(tf.size(rates)):
            losses = losses.write(number, self.step(batches[number], rates[number]))
        return losses.stack()

    @tf.function(reduce_retracing=True)
    def logits(self, images: tf.Tensor) -> tf.Tensor:
        """What the model says with the weights as they are."""
        return self.model(images)

    def accuracy(self) -> float:
        """On the test images."""
        classes = self.logits(self.test_images).numpy().argmax(1)
        return float(np.mean(classes == self.test_labels))

    def run(self, rate_at: Schedule, global_batch: int, epochs: int, seed: int) -> dict:
        """One run; loss, test accuracy and seconds of training for each epoch."""
        self.begin(seed)
        per_epoch = steps_per_epoch(len(self.images), global_batch)
        history = {"loss": [], "accuracy": [], "seconds": []}
        for epoch in range(epochs):
            start = time.perf_counter()
            losses = self.steps(epoch * per_epoch, per_epoch, global_batch, seed, rate_at)
            history["seconds"].append(time.perf_counter() - start)
            history["loss"].append(float(np.mean(losses)))
            history["accuracy"].append(self.accuracy())
        return history

    def accuracies(self, name: str, batch: int, epochs: int, seeds: int = 5) -> np.ndarray:
        """Test accuracy (seed, epoch) with that schedule and batch, and 8 times the rate."""
        rate_at = by_name(name, RATE, RANKS, WARM_UP_EPOCHS)
        runs = [self.run(rate_at, batch, epochs, seed) for seed in range(seeds)]
        return np.array([run["accuracy"] for run in runs])

    def seconds_per_step(self, batch: int) -> float:
        """The median over some steps."""
        self.begin(0)
        rate_at = without_warm_up(RATE)
        return metrics.median_seconds(lambda: self.steps(0, 1, batch, 0, rate_at), repeats=20)

    def distance(self, k: int, rate: float, batch: int = 16) -> float:
        """From the end of `k` small steps to that of one step with `k` times batch and rate.

        It is relative to the way that the small steps went.
        """
        self.begin(0)
        start = self.model.get_weights()
        self.steps(0, k, batch, 0, without_warm_up(rate))
        small = self.model.get_weights()
        self.begin(0)
        union = [numbers(step, len(self.images), batch, 0) for step in range(k)]
        self.step(tf.constant(np.concatenate(union)), tf.constant(k * rate, tf.float32))
        large = self.model.get_weights()
        return norm_of_difference(large, small) / norm_of_difference(small, start)


def norm_of_difference(first: list[np.ndarray], second: list[np.ndarray]) -> float:
    """Over all weights."""
    pairs = zip(first, second, strict=True)
    return sum(float(np.sum((ours - theirs) ** 2)) for ours, theirs in pairs) ** 0.5
