"""A callback for `Model.fit` that lets all processes begin an epoch together and notes what each had of its cores."""

import time
from collections.abc import Callable
from typing import Any

from distlab import devices  # before TensorFlow: it selects tf-keras

# isort: split
import tensorflow as tf


class CoreShare(tf.keras.callbacks.Callback):
    """`epochs`: this process's share of its cores in each epoch."""

    def __init__(self, wait_for_all: Callable[[], object] = lambda: None) -> None:
        """`wait_for_all`: returns when every process has called it, such as an all-reduce."""
        super().__init__()
        self.epochs: list[float] = []
        self._wait_for_all = wait_for_all

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Wait for the others; then start the clocks."""
        self._wait_for_all()
        self._start, self._used = time.perf_counter(), time.process_time()

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Note the share, 1 if all of its cores worked for this process all the time."""
        seconds, used = time.perf_counter() - self._start, time.process_time() - self._used
        self.epochs.append(used / seconds / devices.cores())
