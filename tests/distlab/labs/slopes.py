"""Whether a gradient that a judge computes is the slope of its loss."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest


def assert_are_slopes(
    gradients: Sequence[np.ndarray], loss: Callable[[list[np.ndarray]], float], arrays: Sequence[np.ndarray]
) -> None:
    """Each array's gradient is measured where it is largest, by a small change of the array."""
    for index, gradient in enumerate(gradients):
        place, ends = np.unravel_index(np.abs(gradient).argmax(), gradient.shape), []
        for change in (1e-6, -1e-6):
            moved = [array.copy() for array in arrays]
            moved[index][place] += change
            ends.append(loss(moved))
        assert (ends[0] - ends[1]) / 2e-6 == pytest.approx(gradient[place], rel=1e-4)
