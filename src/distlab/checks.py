"""Comparisons that end a parallel notebook: is the parallel run the serial run?"""

from collections.abc import Sequence

import numpy as np

TOLERANCE = 1e-5


def largest_difference(first: Sequence[np.ndarray], second: Sequence[np.ndarray]) -> float:
    """The largest absolute difference between two lists of arrays, as `model.get_weights()` gives them.

    Raises ValueError when the lists have other lengths, other shapes, no values or values that are not finite: such
    runs are not equal whatever the numbers say.
    """
    if len(first) != len(second):
        raise ValueError(f"{len(first)} arrays cannot be compared with {len(second)}")
    if not any(np.size(one) for one in (*first, *second)):
        raise ValueError("there is nothing to compare: both lists are empty")
    differences = []
    for index, (one, other) in enumerate(zip(first, second, strict=True)):
        if np.shape(one) != np.shape(other):
            raise ValueError(f"array {index} has shape {np.shape(one)} in one list and {np.shape(other)} in the other")
        if not (np.all(np.isfinite(one)) and np.all(np.isfinite(other))):
            raise ValueError(f"array {index} holds values that are not finite")
        difference = np.max(np.abs(np.asarray(one, np.float64) - np.asarray(other, np.float64)), initial=0.0)
        differences.append(float(difference))
    return max(differences)


def assert_equal_weights(
    first: Sequence[np.ndarray], second: Sequence[np.ndarray], tolerance: float = TOLERANCE
) -> None:
    """Raise AssertionError, with the difference, unless no weight differs by more than `tolerance`; else say so."""
    difference = largest_difference(first, second)
    if difference > tolerance:
        raise AssertionError(f"the weights differ by up to {difference:.2g}, more than the tolerance {tolerance:g}")
    print(f"Equal: no weight differs by more than {tolerance:g}")
