"""What the tests of chapter 14's programs share: their folder, a start, and the serial run that they must equal."""

import sys
from pathlib import Path

import numpy as np

from distlab import models
from distlab.runtime import processes

# isort: split
import tensorflow as tf

CHAPTER = Path(__file__).parents[2] / "notebooks/programs/14_other_frameworks"
STEPS, GLOBAL_BATCH = 20, 48


def write_start(file: Path) -> Path:
    """The file of first weights and images."""
    finished = processes.run([sys.executable, str(CHAPTER / "start.py"), str(file)], seconds=600)
    assert finished.status == 0, finished.output
    return file


def weights_in(file: Path) -> list[np.ndarray]:
    """The six arrays of weights in such a file."""
    with np.load(file) as arrays:
        return [arrays[f"weight_{number}"] for number in range(6)]


def serial(start: Path, rate: float = 0.02) -> tuple[list[np.ndarray], list[float]]:
    """Weights and losses after Keras's own loop over the global batches, in this process."""
    with np.load(start) as arrays:
        images, labels = arrays["images"], arrays["labels"]
    model = models.cnn(filters=16)
    model.set_weights(weights_in(start))
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(tf.keras.optimizers.SGD(rate, momentum=0.9), loss)
    losses = []
    for step in range(STEPS):
        batch = slice(step * GLOBAL_BATCH, (step + 1) * GLOBAL_BATCH)
        losses.append(float(model.train_on_batch(images[batch], labels[batch])))
    return model.get_weights(), losses
