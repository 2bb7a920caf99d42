"""The small NumPy network: its gradients are those of finite differences, and of parts that add up."""

import numpy as np

from distlab.model_parallel import layered_network

NUMBERS = np.random.default_rng(0)
INPUTS, LABELS = NUMBERS.normal(size=(10, 5)), NUMBERS.integers(0, 3, 10)
LAYERS = layered_network.random_layers((5, 8, 6, 3), seed=1)


def loss(layers: list[np.ndarray]) -> float:
    outputs = INPUTS
    for index, layer in enumerate(layers):
        outputs = layered_network.forward(layer, outputs, index == len(layers) - 1)
    return float(np.mean(np.log(np.exp(outputs).sum(axis=1)) - outputs[np.arange(len(LABELS)), LABELS]))


def test_gradients_are_the_finite_differences_of_the_loss() -> None:
    step = 1e-6
    for index, gradient in enumerate(layered_network.gradients(LAYERS, INPUTS, LABELS)):
        assert gradient.shape == LAYERS[index].shape
        for place in np.ndindex(gradient.shape):
            losses = []
            for sign in (1, -1):
                layers = [layer.copy() for layer in LAYERS]
                layers[index][place] += sign * step
                losses.append(loss(layers))
            assert abs((losses[0] - losses[1]) / (2 * step) - gradient[place]) < 1e-7
