"""Training steps of a named model: alone, their communication alone, and both together."""

from collections.abc import Callable
from functools import partial
from typing import Any

from distlab import models  # before TensorFlow: it selects tf-keras

# isort: split
import numpy as np
import tensorflow as tf

from distlab.costs.measured.ranks import Communicator

MODELS: dict[str, Callable[[], Any]] = {
    "cnn": models.cnn,
    "mlp": models.mlp,
    "wide_cnn": partial(models.cnn, filters=128),
}
_LEARNING_RATE = 0.01


class TrainingSteps:
    """A model, one batch of random images, and what a step does with them.

    gradient_bytes: of each gradient. Each method does its work once, and comes back when it is done.
    """

    def __init__(self, model_name: str, batch: int, communicator: Communicator) -> None:
        tf.keras.utils.set_random_seed(1)
        self._model = MODELS[model_name]()
        self._optimizer = tf.keras.optimizers.SGD(_LEARNING_RATE)
        self._optimizer.build(self._model.trainable_variables)
        self._loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        random = np.random.default_rng(communicator.rank)
        self._images = tf.constant(random.random((batch, *models.IMAGE_SHAPE), np.float32))
        self._labels = tf.constant(random.integers(models.CLASSES, size=batch))
        self.gradient_bytes = tuple(4 * int(np.prod(each.shape)) for each in self._model.trainable_variables)

        average = communicator.average
        graph = partial(tf.function, autograph=False)
        self._apply = graph(self._apply_gradients)
        self._alone = graph(lambda: self._apply_gradients(self._gradients()))
        gradients = graph(self._gradients)
        if communicator.in_graph:
            self._together = graph(lambda: self._apply_gradients(average(self._gradients())))
            self._average = graph(average)
        else:
            self._together = lambda: self._apply(average(gradients()))
            self._average = average
        self._constant_gradients = gradients()

    def alone(self) -> None:
        """Forward, backward and update, with no communication."""
        self._alone().numpy()

    def communicate(self) -> None:
        """Average the gradients, with no computing."""
        self._average(self._constant_gradients)[-1].numpy()

    def together(self) -> None:
        """A whole step: forward, backward, average, update."""
        self._together().numpy()

    def _gradients(self) -> list[Any]:
        with tf.GradientTape() as tape:
            loss = self._loss(self._labels, self._model(self._images, training=True))
        gradients: list[Any] = tape.gradient(loss, self._model.trainable_variables)
        return gradients

    def _apply_gradients(self, gradients: list[Any]) -> Any:
        """The number of the step, which is known when the weights are."""
        self._optimizer.apply_gradients(zip(gradients, self._model.trainable_variables, strict=True))
        return tf.identity(self._optimizer.iterations)
