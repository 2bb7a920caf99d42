"""Train in one process with the global batches of many ranks: the same weights, without the cost of starting ranks.

    training = one_process.OneProcess("digits", lambda: models.cnn(8))
    history = training.run(large_batch.schedules.by_name("gradual", 0.01, 8, 3), global_batch=96, epochs=6, seed=0)

A module for notebook 10; it needs neither Horovod nor MPI. The schedules are those of `train.py`, which runs on real
ranks. That both are the same is proven in the notebook: after 20 steps of SGD no weight differs by more than 1e-5. A
run takes seconds and writes no checkpoints.
"""

import time
from collections.abc import Callable

import numpy as np

from distlab import data, large_batch, models  # before TensorFlow: it selects tf-keras

# isort: split
import tensorflow as tf

AT_CHANCE = 0.2
"""A run whose test accuracy ends below this has not learnt: ten classes by chance give 0.1."""


class OneProcess:
    """A network, an optimizer and a data set; any number of runs, each from new first weights."""

    def __init__(
        self,
        dataset: str,
        network: Callable[[], tf.keras.Model] = models.cnn,
        optimizer: tf.keras.optimizers.Optimizer | None = None,
        images: int | None = None,
    ) -> None:
        """`network` builds the model; Adam without an `optimizer`; the first `images` of the training set, or all."""
        train, test = data.load(dataset)
        self.images, self.labels = tf.constant(train.images[:images]), tf.constant(train.labels[:images])
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
    def step(self, numbers: tf.Tensor, rate: tf.Tensor) -> tf.Tensor:
        """One update by the mean over these images; gives the loss before it."""
        images, labels = tf.gather(self.images, numbers), tf.gather(self.labels, numbers)
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, self.model(images, training=True))
            loss = tf.reduce_mean(losses)
        gradients = tape.gradient(loss, self.model.trainable_variables)
        self.optimizer.learning_rate.assign(rate)
        self.optimizer.apply_gradients(zip(gradients, self.model.trainable_variables, strict=True))
        return loss

    def steps(
        self, first: int, count: int, global_batch: int, seed: int, rate_at: large_batch.schedules.Schedule
    ) -> list[float]:
        """Some steps of a run; gives their losses."""
        size, numbers = len(self.images), range(first, first + count)
        per_epoch = large_batch.global_batches.steps_per_epoch(size, global_batch)
        batches = [large_batch.global_batches.numbers(number, size, global_batch, seed) for number in numbers]
        rates = np.array([rate_at(number / per_epoch) for number in numbers], np.float32)
        return self.all_steps(tf.constant(np.stack(batches)), tf.constant(rates)).numpy().tolist()

    @tf.function(reduce_retracing=True)
    def all_steps(self, batches: tf.Tensor, rates: tf.Tensor) -> tf.Tensor:
        """A step for each row of image numbers; one call instead of many, each of which takes as long as a step."""
        losses = tf.TensorArray(tf.float32, tf.size(rates))
        for number in tf.range(tf.size(rates)):
            losses = losses.write(number, self.step(batches[number], rates[number]))
        return losses.stack()

    def accuracy(self) -> float:
        """On the test images."""
        return float(np.mean(self.logits(self.test_images).numpy().argmax(1) == self.test_labels))

    @tf.function(reduce_retracing=True)
    def logits(self, images: tf.Tensor) -> tf.Tensor:
        """What the model says with the weights as they are."""
        return self.model(images)

    @tf.function
    def training_loss(self) -> tf.Tensor:
        """The mean loss over the first 400 training images."""
        images, labels = self.images[:400], self.labels[:400]
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, self.model(images)))

    def run(
        self, rate_at: large_batch.schedules.Schedule, global_batch: int, epochs: int, seed: int
    ) -> dict[str, list[float]]:
        """One run; loss, test accuracy and seconds of training for each epoch."""
        self.begin(seed)
        per_epoch = large_batch.global_batches.steps_per_epoch(len(self.images), global_batch)
        history = {"loss": [], "accuracy": [], "seconds": []}
        for epoch in range(epochs):
            start = time.perf_counter()
            losses = self.steps(epoch * per_epoch, per_epoch, global_batch, seed, rate_at)
            history["seconds"].append(time.perf_counter() - start)
            history["loss"].append(float(np.mean(losses)))
            history["accuracy"].append(self.accuracy())
        return history

    def steps_to(self, target: float, rate: float, global_batch: int, seed: int, most: int) -> float:
        """Steps until the training loss is below `target`; infinite if that takes more than `most`.

        The loss is looked at from the tenth step on, whenever a twentieth has been added.
        """
        self.begin(seed)
        done = 0
        while done < most:
            count = max(1, done // 20) if done else 10
            self.steps(done, count, global_batch, seed, large_batch.schedules.without_warm_up(rate))
            done += count
            if float(self.training_loss()) < target:
                return done
        return float("inf")
