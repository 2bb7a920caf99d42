"""What a stage of a pipeline holds: chunks that only take time, and chunks of a real network."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from distlab.model_parallel import layered_network


class Chunk(Protocol):
    """A run of layers on one stage; it keeps what its backward pass needs of every micro-batch under way."""

    forward_seconds: float
    backward_seconds: float

    def forward(self, micro_batch: int, activation: np.ndarray | None) -> np.ndarray:
        """What the next chunk needs; the model's first chunk gets None and takes the micro-batch's inputs itself."""

    def backward(self, micro_batch: int, gradient: np.ndarray | None) -> np.ndarray:
        """The gradient by what `forward` got; the model's last chunk gets None and begins with its own loss."""


class Timed:
    """A chunk that computes nothing: its passes take seconds, and its messages have a size."""

    def __init__(self, forward_seconds: float, backward_seconds: float, message_bytes: int = 0) -> None:
        """Seconds of one micro-batch on this chunk, and the bytes of an activation and of its gradient."""
        self.forward_seconds = forward_seconds
        self.backward_seconds = backward_seconds
        self._message = np.zeros(message_bytes, np.uint8)

    def forward(self, micro_batch: int, activation: np.ndarray | None) -> np.ndarray:
        """A message of the chunk's size."""
        return self._message

    def backward(self, micro_batch: int, gradient: np.ndarray | None) -> np.ndarray:
        """A message of the chunk's size."""
        return self._message


class DenseChunk:
    """Some of a network's layers (`layered_network`), with their gradient summed over the micro-batches.

    gradients: of the mean loss of the whole batch by each layer, complete after the last backward pass.
    activations_held: how many micro-batches wait for their backward pass. most_activations_held: the most ever.
    """

    def __init__(
        self,
        layers: Sequence[np.ndarray],
        inputs: Sequence[np.ndarray] | None = None,
        labels: Sequence[np.ndarray] | None = None,
        forward_seconds: float = 1.0,
        backward_seconds: float = 2.0,
    ) -> None:
        """`inputs`, one array for each micro-batch, on the model's first chunk; `labels` on its last."""
        self.forward_seconds = forward_seconds
        self.backward_seconds = backward_seconds
        self.gradients = [np.zeros_like(layer) for layer in layers]
        self.most_activations_held = 0
        self._layers = list(layers)
        self._inputs = () if inputs is None else inputs
        self._labels = () if labels is None else labels
        self._activations: dict[int, list[np.ndarray]] = {}

    @property
    def activations_held(self) -> int:
        """How many micro-batches wait for their backward pass."""
        return len(self._activations)

    def forward(self, micro_batch: int, activation: np.ndarray | None) -> np.ndarray:
        """The last layer's outputs; all activations are kept for the backward pass."""
        activations = [self._inputs[micro_batch] if activation is None else activation]
        for index, layer in enumerate(self._layers):
            activations.append(layered_network.forward(layer, activations[-1], self._is_output(index)))
        self._activations[micro_batch] = activations
        self.most_activations_held = max(self.most_activations_held, len(self._activations))
        return activations[-1]

    def backward(self, micro_batch: int, gradient: np.ndarray | None) -> np.ndarray:
        """The gradient by the chunk's inputs; the layers' gradients grow by this micro-batch's."""
        activations = self._activations.pop(micro_batch)
        if gradient is None:
            examples = sum(len(part) for part in self._labels)
            gradient = layered_network.loss_gradient(activations[-1], self._labels[micro_batch], examples)
        for index in reversed(range(len(self._layers))):
            inputs, outputs = activations[index : index + 2]
            gradient, by_layer = layered_network.backward(
                self._layers[index], inputs, outputs, gradient, self._is_output(index)
            )
            self.gradients[index] += by_layer
        return gradient

    def _is_output(self, index: int) -> bool:
        return len(self._labels) > 0 and index == len(self._layers) - 1
