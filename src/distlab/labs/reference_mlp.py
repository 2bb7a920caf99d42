"""The lecture's network in NumPy, in double precision: what a student's training has to give.

weights: [(784, 128), (128,), (128, 10), (10,)] as `model.get_weights()` gives them; images (n, 28, 28), labels (n,).
"""

from collections.abc import Sequence

import numpy as np

from distlab.labs.plain_data import Array

SHAPES = [(784, 128), (128,), (128, 10), (10,)]

Weights = list[Array]
Batch = tuple[Array, Array]


def drawn_weights(generator: np.random.Generator) -> Weights:
    """Weights of the usual size, biases too, float32."""
    return [generator.normal(0, 0.05, shape).astype(np.float32) for shape in SHAPES]


def drawn_batch(generator: np.random.Generator, count: int) -> Batch:
    """Images of noise, float32 (count, 28, 28) in [0, 1], and labels int64 (count,)."""
    return generator.random((count, 28, 28)).astype(np.float32), generator.integers(0, 10, count)


def logits(weights: Weights, images: Array) -> Array:
    """The output of the last layer, (n, 10)."""
    first, first_bias, second, second_bias = (np.asarray(array, np.float64) for array in weights)
    hidden = np.maximum(images.reshape(len(images), -1) @ first + first_bias, 0)
    return np.asarray(hidden @ second + second_bias)


def softmax(scores: Array) -> Array:
    """Probabilities, row by row."""
    exponentials = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(exponentials / exponentials.sum(axis=1, keepdims=True))


def cross_entropy(probabilities: Array, labels: Array) -> float:
    """The mean of −ln of the probability of each label."""
    return float(-np.mean(np.log(probabilities[np.arange(len(labels)), labels])))


def gradient(weights: Weights, images: Array, labels: Array) -> Weights:
    """Of the sum of the cross-entropies of these images."""
    first, first_bias, second, _ = (np.asarray(array, np.float64) for array in weights)
    flat = images.reshape(len(images), -1).astype(np.float64)
    hidden = np.maximum(flat @ first + first_bias, 0)
    of_scores = softmax(logits(weights, images)) - np.eye(10)[labels]
    of_hidden = of_scores @ second.T * (hidden > 0)
    return [flat.T @ of_hidden, of_hidden.sum(axis=0), hidden.T @ of_scores, of_scores.sum(axis=0)]


def trained(weights: Weights, steps: Sequence[Sequence[tuple[Batch, float]]], rate: float) -> Weights:
    """Weights after SGD; in each step the gradients of some batches, each times its factor, are added up."""
    weights = [np.asarray(array, np.float64) for array in weights]
    for step in steps:
        parts = [(gradient(weights, *batch), factor) for batch, factor in step]
        weights = [
            array - rate * sum(factor * part[index] for part, factor in parts) for index, array in enumerate(weights)
        ]
    return weights
