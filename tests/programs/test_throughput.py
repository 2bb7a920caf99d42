"""The throughput callback of notebook 11 counts the images that the steps worked on, whatever the data set holds."""

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import tensorflow as tf

from distlab import programs

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def program(root: Path) -> ModuleType:
    return programs.module(root / "notebooks/programs/11_scaling_and_profiling/throughput.py")


def fitted(program: ModuleType, fed: tf.data.Dataset, steps_per_execution: int = 1, **how: object) -> list[int]:
    """The images of each epoch, as the callback counted them."""
    throughput = program.Throughput()
    model = tf.keras.Sequential([tf.keras.layers.Input((4,)), tf.keras.layers.Dense(3)])
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("sgd", loss, metrics=["accuracy", throughput.images], steps_per_execution=steps_per_execution)
    model.fit(fed, epochs=2, verbose=0, callbacks=[throughput], **how)
    assert all(seconds > 0 for _, seconds in throughput.epochs)
    return [images for images, _ in throughput.epochs]


def samples(count: int) -> tf.data.Dataset:
    return tf.data.Dataset.from_tensor_slices((np.zeros((count, 4), np.float32), np.zeros(count, np.int64)))


def test_a_smaller_last_batch_counts_with_its_size(program: ModuleType) -> None:
    assert fitted(program, samples(21).batch(8)) == [21, 21]


def test_a_dropped_tail_does_not_count(program: ModuleType) -> None:
    assert fitted(program, samples(21).batch(8, drop_remainder=True)) == [16, 16]
    assert fitted(program, samples(21).repeat().batch(8), steps_per_epoch=21 // 8) == [16, 16]


def test_the_usual_wrong_counts_differ_from_the_true_one(program: ModuleType) -> None:
    # Not the size of the data set, nor steps × batch: its third batch, of 5 images, is the first of the second epoch.
    assert fitted(program, samples(21).batch(8).repeat(), steps_per_epoch=2) == [16, 13]


def test_validation_does_not_count(program: ModuleType) -> None:
    assert fitted(program, samples(21).batch(8), validation_data=samples(100).batch(50)) == [21, 21]


def test_several_steps_per_call_count_all(program: ModuleType) -> None:
    assert fitted(program, samples(64).repeat().batch(8), steps_per_execution=4, steps_per_epoch=8) == [64, 64]
