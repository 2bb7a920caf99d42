"""The text classifier in NumPy, in double precision: what a student's training has to give.

weights: [(words, units), (units, topics), (topics,)] as `model.get_weights()` gives them; words (n, length),
labels (n,).
"""

from collections.abc import Sequence

import numpy as np

from distlab.labs.plain_data import Array

Weights = Sequence[Array]


def _forward(weights: Weights, words: Array) -> tuple[Array, Array]:
    """The means of the words' vectors, and the probabilities."""
    vectors, dense, bias = (np.asarray(array, np.float64) for array in weights)
    means = vectors[words].mean(axis=1)
    scores = means @ dense + bias
    exponentials = np.exp(scores - scores.max(axis=1, keepdims=True, initial=-np.inf))
    return means, exponentials / exponentials.sum(axis=1, keepdims=True)


def loss(weights: Weights, words: Array, labels: Array) -> float:
    """The sum of the cross-entropies of these texts."""
    _, probabilities = _forward(weights, words)
    return float(-np.log(probabilities[np.arange(len(labels)), labels]).sum())


def gradient(weights: Weights, words: Array, labels: Array) -> list[Array]:
    """Of that sum."""
    vectors, dense, bias = (np.asarray(array, np.float64) for array in weights)
    means, probabilities = _forward(weights, words)
    of_scores = probabilities - np.eye(len(bias))[labels]
    of_vectors = np.zeros_like(vectors)
    of_words = (of_scores @ dense.T / words.shape[1])[:, None, :].repeat(words.shape[1], axis=1)
    np.add.at(of_vectors, words, of_words)
    return [of_vectors, means.T @ of_scores, of_scores.sum(axis=0)]
