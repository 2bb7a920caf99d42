"""The course's models: what goes in and comes out."""

from collections.abc import Callable

import numpy as np
import pytest

from distlab import models

tf = models.tf  # imported by `distlab.models`, so after `distlab` has selected the course's Keras
SIZE = models.IMAGE_SHAPE[0]


@pytest.mark.parametrize(
    ("build", "outputs"),
    [(models.mlp, (models.CLASSES,)), (models.cnn, (models.CLASSES,)), (models.unet, (SIZE, SIZE))],
)
def test_images_become_float32_logits(build: Callable, outputs: tuple[int, ...]) -> None:
    model = build()
    assert model.input_shape == (None, SIZE, SIZE)
    answer = model(np.random.default_rng(1).random((3, SIZE, SIZE), dtype=np.float32))
    assert answer.dtype == tf.float32
    assert answer.shape == (3, *outputs)
    assert np.min(answer) < 0  # a probability would not be negative
