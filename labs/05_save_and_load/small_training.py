"""The training that the student resumes in lab 05; importing this starts TensorFlow."""

from collections.abc import Sequence

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray


class SmallTraining:
    """A small network, its data, and all that changes while it is trained."""

    def __init__(self, images: NDArray[np.float32], labels: NDArray[np.int64], rows: Sequence[Sequence[int]]) -> None:
        """A new process calls this; `rows` are the numbers of the images of each step."""
        self.images, self.labels, self.rows = images, labels, rows
        self.weights = tf.Variable(tf.random.normal((images.shape[1], 3)))
        self.optimizer = tf.keras.optimizers.Adam(0.02)
        self.optimizer.build([self.weights])
        self.generator = tf.random.Generator.from_seed(5)
        self.step = tf.Variable(0)
        self.lowest_loss = tf.Variable(np.inf)

    def numbers(self, step: int) -> list[int]:
        """The numbers of the images of this step, as `numbers_of` of exercise 1 gives them."""
        return list(self.rows[step])

    def train_step(self, numbers: Sequence[int]) -> None:
        """Train on these images, and count the step."""
        images, labels = self.images[numbers], self.labels[numbers]
        kept = self.generator.uniform(images.shape) < 0.8  # dropout
        with tf.GradientTape() as tape:
            scores = tf.where(kept, images, 0.0) @ self.weights
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, scores))
        gradient = tape.gradient(loss, self.weights)
        self.optimizer.apply_gradients([(gradient, self.weights)])
        if loss > self.lowest_loss:  # no progress: take smaller steps
            self.optimizer.learning_rate.assign(0.9 * self.optimizer.learning_rate)
        self.lowest_loss.assign(tf.minimum(loss, self.lowest_loss))
        self.step.assign_add(1)
