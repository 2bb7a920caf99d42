"""The course's models: what goes in and comes out, equal weights from equal seeds."""

from collections.abc import Callable

import numpy as np
import pytest

from distlab import models

tf = models.tf  # imported by `distlab.models`, so after `distlab` has selected the course's Keras
SIZE = models.IMAGE_SHAPE[0]


def images(count: int) -> np.ndarray:
    return np.random.default_rng(1).random((count, SIZE, SIZE), dtype=np.float32)


@pytest.mark.parametrize(
    ("build", "outputs"),
    [(models.mlp, (models.CLASSES,)), (models.cnn, (models.CLASSES,)), (models.unet, (SIZE, SIZE))],
)
def test_images_become_float32_logits(build: Callable, outputs: tuple[int, ...]) -> None:
    model = build()
    assert model.input_shape == (None, SIZE, SIZE)
    answer = model(images(3))
    assert answer.dtype == tf.float32
    assert answer.shape == (3, *outputs)
    assert np.min(answer) < 0  # a probability would not be negative


def test_dropout_acts_in_training_alone_and_can_be_switched_off() -> None:
    batch = images(2)
    model = models.mlp(dropout=0.5)
    assert np.array_equal(model(batch, training=False), model(batch, training=False))
    assert not np.array_equal(model(batch, training=True), model(batch, training=True))
    without = models.mlp(dropout=0.0)
    assert np.array_equal(without(batch, training=True), without(batch, training=False))


@pytest.mark.slow
def test_equal_seeds_give_equal_weights_and_other_seeds_others() -> None:
    def weights(seed: int) -> list[np.ndarray]:
        tf.keras.utils.set_random_seed(seed)
        return models.cnn().get_weights()

    first, again, second = weights(1), weights(1), weights(2)
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    kernels = [(a, b) for a, b in zip(first, second, strict=True) if a.ndim > 1]
    assert kernels
    assert not any(np.array_equal(a, b) for a, b in kernels)
