"""A throughput callback for `Model.fit` that counts the images that were truly processed.

    throughput = Throughput()
    model.compile(optimizer, loss, metrics=[throughput.images])
    model.fit(batches, callbacks=[throughput])
    throughput.epochs  # [(images, seconds), ...]

Under a strategy make it in the strategy's scope. Under Horovod it counts this rank's images;
add up those of all ranks.
"""

import time
from typing import Any

import distlab  # noqa: F401  before TensorFlow: it selects tf-keras

import tensorflow as tf


class ImagesProcessed(tf.keras.metrics.Sum):
    """How many images the training steps of this epoch have worked on, counted inside them."""

    def update_state(self, labels: tf.Tensor, *others: object, **weights: object) -> None:
        """Add the size that this batch really has."""
        super().update_state(tf.shape(labels)[0])


class Throughput(tf.keras.callbacks.Callback):
    """Notes the images and the seconds of each epoch; the first one is the warm-up."""

    def __init__(self) -> None:
        super().__init__()
        self.images = ImagesProcessed("images", tf.int64)
        self.epochs: list[tuple[int, float]] = []

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Start the clock."""
        self._seen, self._start = 0, time.perf_counter()

    def on_train_batch_end(self, batch: int, logs: dict[str, Any]) -> None:
        """Note how far it has come; a validation resets the metric before the epoch ends."""
        self._seen, self._end = int(logs["images"]), time.perf_counter()

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Note the epoch: until its last step, without validation and other callbacks."""
        self.epochs.append((self._seen, self._end - self._start))
