"""Checks of a run's numbers: is the parallel run the serial run, and is a training still finite?"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

TOLERANCE = 1e-5


def end_unless_finite(steps: int, *values: ArrayLike, option: str = "--learning-rate") -> None:
    """End the program with one sentence if a loss or a weight is not finite after so many steps.

    Called before anything is saved, by all ranks and with numbers that are the same on all, it ends all of them.
    """
    if not all(np.isfinite(value).all() for value in values):
        raise SystemExit(f"The loss is no longer finite after step {steps}: take a smaller {option}.")


def largest_difference(first: Sequence[ArrayLike], second: Sequence[ArrayLike]) -> float:
    """The largest absolute difference between two lists of arrays, as `model.get_weights()` gives them.

    Raises ValueError when lengths or shapes differ, and when there are no values or values that are not finite: such
    runs are not equal whatever the numbers say.
    """
    ours, theirs = ([np.asarray(array, np.float64) for array in arrays] for arrays in (first, second))
    if len(ours) != len(theirs):
        raise ValueError(f"{len(ours)} arrays cannot be compared with {len(theirs)}")
    if not any(array.size for array in ours):
        raise ValueError("there is nothing to compare: both lists are empty")
    differences = []
    for index, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        if a.shape != b.shape:
            raise ValueError(f"array {index} has shape {a.shape} in one list and {b.shape} in the other")
        if not (np.all(np.isfinite(a)) and np.all(np.isfinite(b))):
            raise ValueError(f"array {index} holds values that are not finite")
        differences.append(float(np.max(np.abs(a - b), initial=0.0)))
    return max(differences)


def assert_equal(
    first: Sequence[ArrayLike], second: Sequence[ArrayLike], what: str, tolerance: float = TOLERANCE
) -> None:
    """Print the largest difference of two lists of arrays; raise AssertionError if it is more than `tolerance`.

    what: what was compared, in the plural: "weights", "losses", "gradients", "outputs".

    Raises what `largest_difference` raises.
    """
    difference = largest_difference(first, second)
    if not difference <= tolerance:
        raise AssertionError(f"the {what} differ by up to {difference:.2g}, more than the tolerance {tolerance:g}")
    print(f"largest difference of the {what}: {difference:.1g} (tolerance {tolerance:g})")


def assert_equal_weights(first: Sequence[ArrayLike], second: Sequence[ArrayLike], tolerance: float = TOLERANCE) -> None:
    """`assert_equal` of two lists of weights, as `model.get_weights()` gives them."""
    assert_equal(first, second, "weights", tolerance)
