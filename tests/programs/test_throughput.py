"""The throughput callback of notebook 11 counts the images that the steps worked on, whatever the data set holds."""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from distlab import programs

pytestmark = pytest.mark.slow


def samples(count: int) -> tf.data.Dataset:
    return tf.data.Dataset.from_tensor_slices((np.zeros((count, 4), np.float32), np.zeros(count, np.int64)))


FED = {
    "a smaller last batch": (lambda: samples(21).batch(8), {}, [21, 21]),
    "a dropped tail": (lambda: samples(21).batch(8, drop_remainder=True), {}, [16, 16]),
    # Not steps × batch: its third batch, of 5 images, is the first of the second epoch.
    "batches that go on": (lambda: samples(21).batch(8).repeat(), {"steps_per_epoch": 2}, [16, 13]),
    "validation": (lambda: samples(21).batch(8), {"validation_data": samples(100).batch(50)}, [21, 21]),
    "several steps per call": (lambda: samples(64).repeat().batch(8), {"steps_per_epoch": 8}, [64, 64]),
}


@pytest.mark.parametrize("name", FED)
def test_the_images_that_the_steps_worked_on_are_counted(root: Path, name: str) -> None:
    feed, how, expected = FED[name]
    throughput = programs.module(root / "notebooks/programs/11_scaling_and_profiling/throughput.py").Throughput()
    model = tf.keras.Sequential([tf.keras.layers.Input((4,)), tf.keras.layers.Dense(3)])
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    steps = 4 if name == "several steps per call" else 1
    model.compile("sgd", loss, metrics=["accuracy", throughput.images], steps_per_execution=steps)
    model.fit(feed(), epochs=2, verbose=0, callbacks=[throughput], **how)
    assert [images for images, _ in throughput.epochs] == expected
    assert all(seconds > 0 for _, seconds in throughput.epochs)
