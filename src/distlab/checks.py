"""Checks of a run's numbers: is the parallel run the serial run, and is a training still finite?"""

import math
from collections.abc import Sequence
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike

from distlab.runtime.errors import PlainError

TOLERANCE = 1e-5


class NotWeights(PlainError, TypeError):
    """What was given is no list of arrays; the message says what to give."""


def end_unless_finite(steps: int, *values: ArrayLike, option: str = "--learning-rate") -> None:
    """End the program with one sentence if a loss or a weight is not finite after so many steps.

    Called before anything is saved, by all ranks and with numbers that are the same on all, it ends all of them.
    """
    if not all(np.isfinite(value).all() for value in values):
        raise SystemExit(f"The loss is no longer finite after step {steps}: take a smaller {option}.")


def largest_difference(first: Sequence[ArrayLike], second: Sequence[ArrayLike]) -> float:
    """The largest absolute difference between two lists of arrays, as `model.get_weights()` gives them.

    Raises ValueError when lengths or shapes differ, and when there are no values or values that are not finite: such
    runs are not equal whatever the numbers say. Raises NotWeights for anything but lists of arrays of numbers.
    """
    if any(a is b and hasattr(a, "assign") for a, b in zip(_listed(first), _listed(second), strict=False)):
        raise NotWeights(
            "Both lists hold the same variable, which would be compared with itself: keep copies of the values, by "
            "model.get_weights()."
        )
    ours, theirs = _weights(first), _weights(second)
    if len(ours) != len(theirs):
        raise ValueError(f"{len(ours)} arrays cannot be compared with {len(theirs)}")
    if not any(array.size for array in (*ours, *theirs)):
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

    Raises ValueError for a tolerance that is not a number of 0 or more, and what `largest_difference` raises.
    """
    if not isinstance(tolerance, Real) or not 0 <= tolerance < math.inf:
        raise ValueError(f"the tolerance is {tolerance!r}; it must be a number of 0 or more")
    difference = largest_difference(first, second)
    if difference > tolerance:
        raise AssertionError(f"the {what} differ by up to {difference:.2g}, more than the tolerance {tolerance:g}")
    print(f"largest difference of the {what}: {difference:.1g} (tolerance {tolerance:g})")


def assert_equal_weights(first: Sequence[ArrayLike], second: Sequence[ArrayLike], tolerance: float = TOLERANCE) -> None:
    """`assert_equal` of two lists of weights, as `model.get_weights()` gives them."""
    assert_equal(first, second, "weights", tolerance)


def _weights(arrays: Sequence[ArrayLike]) -> list[np.ndarray]:
    """The arrays as float64. Raises NotWeights."""
    try:
        return [np.asarray(array, np.float64) for array in list(arrays)]
    except (TypeError, ValueError) as error:
        raise NotWeights(
            f"{type(arrays).__name__} is no list of arrays of numbers; give a model's weights as model.get_weights()."
        ) from error


def _listed(arrays: Sequence[ArrayLike]) -> list[ArrayLike]:
    """The objects, where looking at them does not use them up, as it does for a generator."""
    return arrays if isinstance(arrays, list) else []
