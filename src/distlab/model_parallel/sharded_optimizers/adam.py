"""Adam on arrays of any shape: it works element by element, so that a shard is updated as a part of the whole."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Adam:
    """The optimizer's numbers. Source: Kingma and Ba, arXiv:1412.6980, algorithm 1."""

    learning_rate: float = 1e-3
    momentum: float = 0.9
    variance: float = 0.999
    epsilon: float = 1e-8


class AdamState:
    """Momentum and variance of some parameters and, if those are float16, a float32 copy to which small steps add up.

    nbytes: of all arrays in it.
    """

    def __init__(self, adam: Adam, values: np.ndarray) -> None:
        """`values` are the parameters at the start; they are not kept."""
        self._adam = adam
        precision = np.float32 if values.dtype == np.float16 else values.dtype
        self._momentum = np.zeros(values.shape, precision)
        self._variance = np.zeros(values.shape, precision)
        self._copy = values.astype(precision) if values.dtype == np.float16 else None
        self._steps = 0

    @property
    def nbytes(self) -> int:
        """The bytes of all its arrays."""
        return self._momentum.nbytes + self._variance.nbytes + (0 if self._copy is None else self._copy.nbytes)

    def update(self, values: np.ndarray, gradient: np.ndarray) -> None:
        """Change `values` in place by one step along `gradient`, of the same shape."""
        adam, precise = self._adam, self._momentum.dtype
        gradient = gradient.astype(precise)
        self._steps += 1
        self._momentum += (1 - adam.momentum) * (gradient - self._momentum)
        self._variance += (1 - adam.variance) * (gradient**2 - self._variance)
        momentum = self._momentum / (1 - adam.momentum**self._steps)
        variance = self._variance / (1 - adam.variance**self._steps)
        step = adam.learning_rate * momentum / (np.sqrt(variance) + adam.epsilon)
        if self._copy is None:
            values -= step
        else:
            self._copy -= step.astype(precise)
            values[...] = self._copy
