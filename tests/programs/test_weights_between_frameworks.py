"""Weights between Keras and the other frameworks of chapter 14; that they are one function, the trainings show."""

import numpy as np

from distlab import frameworks, programs

layouts = programs.module(frameworks.PROGRAMS / "layouts.py")


def weights_of(random: np.random.Generator) -> list[np.ndarray]:
    shapes = [(3, 3, 1, 16), (16,), (13 * 13 * 16, 64), (64,), (64, 10), (10,)]
    return [random.standard_normal(shape).astype(np.float32) for shape in shapes]


def test_weights_come_back_as_they_were() -> None:
    weights = weights_of(np.random.default_rng(0))
    back = layouts.to_channels_last(layouts.to_channels_first(weights))
    assert all(np.array_equal(one, other) for one, other in zip(weights, back, strict=True))
