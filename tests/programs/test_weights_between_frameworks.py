"""Weights between Keras and the other frameworks of chapter 14: converted ones are the same function."""

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


def forward(weights: list[np.ndarray], image: np.ndarray, channels_first: bool) -> np.ndarray:
    """The network on one image (28, 28), by loops over positions alone."""
    kernel, bias, dense, dense_bias, head, head_bias = weights
    maps = np.empty((26, 26, 16))
    for row in range(26):
        for column in range(26):
            window = image[row : row + 3, column : column + 3]
            for channel in range(16):
                part = kernel[channel, 0] if channels_first else kernel[:, :, 0, channel]
                maps[row, column, channel] = np.sum(window * part) + bias[channel]
    pooled = np.maximum(maps, 0).reshape(13, 2, 13, 2, 16).max(axis=(1, 3))
    if channels_first:
        hidden = np.maximum(dense @ pooled.transpose(2, 0, 1).reshape(-1) + dense_bias, 0)
        return head @ hidden + head_bias
    hidden = np.maximum(pooled.reshape(-1) @ dense + dense_bias, 0)
    return hidden @ head + head_bias


def test_converted_weights_are_the_same_function_and_transposed_ones_are_not() -> None:
    random = np.random.default_rng(1)
    weights, image = weights_of(random), random.random((28, 28))
    expected = forward(weights, image, channels_first=False)
    converted = layouts.to_channels_first(weights)
    np.testing.assert_allclose(forward(converted, image, channels_first=True), expected, rtol=1e-5)
    converted[2] = weights[2].T
    assert np.max(np.abs(forward(converted, image, channels_first=True) - expected)) > 1
