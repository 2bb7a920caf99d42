"""A small fully connected network in NumPy, one layer at a time, for programs that split a network among ranks.

A layer is one array of shape (inputs + 1, outputs); its last row is the bias. All but the last layer end in a ReLU, and
the loss is the cross-entropy of the last layer's outputs (logits), averaged over the examples.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np


def random_layers(sizes: Sequence[int], seed: int = 0) -> list[np.ndarray]:
    """len(sizes) − 1 layers from normal numbers with standard deviation √(2 / inputs), biases 0.

    Source: He et al., arXiv:1502.01852, section 2.2.
    """
    numbers = np.random.default_rng(seed)
    layers = []
    for inputs, outputs in pairwise(sizes):
        layer: np.ndarray = np.zeros((inputs + 1, outputs))
        layer[:-1] = numbers.normal(scale=np.sqrt(2 / inputs), size=(inputs, outputs))
        layers.append(layer)
    return layers


def forward(layer: np.ndarray, inputs: np.ndarray, is_last: bool) -> np.ndarray:
    """The outputs (n, outputs) of a layer for inputs (n, inputs)."""
    outputs = inputs @ layer[:-1] + layer[-1]
    return outputs if is_last else np.maximum(outputs, 0)


def backward(
    layer: np.ndarray, inputs: np.ndarray, outputs: np.ndarray, gradient: np.ndarray, is_last: bool
) -> tuple[np.ndarray, np.ndarray]:
    """From the gradient of the loss by a layer's outputs those by its inputs and by the layer itself."""
    if not is_last:
        gradient = gradient * (outputs > 0)
    by_layer = np.concatenate([inputs.T @ gradient, gradient.sum(axis=0, keepdims=True)])
    return gradient @ layer[:-1].T, by_layer


def loss_gradient(logits: np.ndarray, labels: np.ndarray, examples: int) -> np.ndarray:
    """The gradient by logits (n, classes) of the cross-entropy summed over n examples and divided by `examples`.

    labels: int (n,). With `examples` the size of the whole batch, the gradients of its parts add up to the batch's.
    """
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    gradient = powers / powers.sum(axis=1, keepdims=True)
    gradient[np.arange(len(labels)), labels] -= 1
    return gradient / examples


def gradients(layers: Sequence[np.ndarray], inputs: np.ndarray, labels: np.ndarray) -> list[np.ndarray]:
    """The gradient of the loss by each layer, on one device: what every split is compared with."""
    last = len(layers) - 1
    activations = [inputs]
    for index, layer in enumerate(layers):
        activations.append(forward(layer, activations[-1], index == last))
    gradient = loss_gradient(activations[-1], labels, len(labels))
    by_layers = []
    for index in reversed(range(len(layers))):
        gradient, by_layer = backward(
            layers[index], activations[index], activations[index + 1], gradient, index == last
        )
        by_layers.append(by_layer)
    return by_layers[::-1]
