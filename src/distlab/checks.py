"""Comparisons that end a parallel notebook: is the parallel run the serial run?"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

TOLERANCE = 1e-5


def largest_difference(first: Sequence[ArrayLike], second: Sequence[ArrayLike]) -> float:
    """The largest absolute difference between two lists of arrays, as `model.get_weights()` gives them.

    Raises ValueError when lengths or shapes differ, and when there are no values or values that are not finite: such
    runs are not equal whatever the numbers say.
    """
    if len(first) != len(second):
        raise ValueError(f"{len(first)} arrays cannot be compared with {len(second)}")
    if not any(np.size(array) for array in (*first, *second)):
        raise ValueError("there is nothing to compare: both lists are empty")
    differences = []
    for index, pair in enumerate(zip(first, second, strict=True)):
        a, b = (np.asarray(array, np.float64) for array in pair)
        if a.shape != b.shape:
            raise ValueError(f"array {index} has shape {a.shape} in one list and {b.shape} in the other")
        if not (np.all(np.isfinite(a)) and np.all(np.isfinite(b))):
            raise ValueError(f"array {index} holds values that are not finite")
        differences.append(float(np.max(np.abs(a - b), initial=0.0)))
    return max(differences)


def assert_equal_weights(first: Sequence[ArrayLike], second: Sequence[ArrayLike], tolerance: float = TOLERANCE) -> None:
    """Raise AssertionError, with the difference, unless no weight differs by more than `tolerance`; else say so."""
    difference = largest_difference(first, second)
    if difference > tolerance:
        raise AssertionError(f"the weights differ by up to {difference:.2g}, more than the tolerance {tolerance:g}")
    print(f"Equal: no weight differs by more than {tolerance:g}")
