"""α, β and γ of a real network from measured times."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import nnls

from distlab.costs.formulas.collectives import message
from distlab.costs.formulas.cost import Cost, Numbers


@dataclass(frozen=True)
class Fit:
    """The α–β–γ model that comes closest to measurements.

    latency: α in seconds. seconds_per_byte: β. seconds_per_byte_reduced: γ, 0 unless it was asked for.
    measured, predicted: seconds, float64 (n,).
    """

    latency: float
    seconds_per_byte: float
    seconds_per_byte_reduced: float
    measured: np.ndarray
    predicted: np.ndarray

    @property
    def residuals(self) -> np.ndarray:
        """(predicted − measured) / measured, float64 (n,): 0.1 where the model says 10 % too much."""
        return self.predicted / self.measured - 1

    @property
    def largest_residual(self) -> float:
        """The largest relative error, without its sign."""
        return float(np.max(np.abs(self.residuals)))

    @property
    def typical_residual(self) -> float:
        """The root of the mean squared relative error: what the fit made as small as it can be."""
        return float(np.sqrt(np.mean(self.residuals**2)))

    @property
    def bandwidth(self) -> float:
        """1/β in bytes per second; infinite when the times do not grow with the size."""
        return 1 / self.seconds_per_byte if self.seconds_per_byte else float("inf")

    def seconds(self, cost: Cost) -> Numbers:
        """What another collective, or another size, takes by this fit."""
        return cost.seconds(self.latency, self.seconds_per_byte, self.seconds_per_byte_reduced)


def fit(
    sizes: ArrayLike,
    seconds: ArrayLike,
    cost: Cost | Callable[[np.ndarray], Cost] = message,
    *,
    with_reduction: bool = False,
) -> Fit:
    """α and β (and γ `with_reduction`) by relative least squares, none of them negative.

    sizes: bytes, whole arrays as in `collectives`; (n,).
    seconds: the measured time of each, (n,); one measurement each, or the median of several.
    cost: what was measured: a `Cost` with one entry per measurement, or a function from sizes to it, for example
        `lambda n: all_reduce("ring", 4, n)`. By default one message from rank to rank.
    with_reduction: find γ too. Then the measurements must be of several collectives or numbers of ranks, as within one
        the bytes sent and the bytes added are proportional.

    The sum of ((predicted − measured) / measured)² is smallest: ordinary least squares would look at the largest arrays
    only, whose times are thousands of times longer, and get α wrong. A number that would come out negative is 0.

    Raises ValueError when the shapes differ, a time is not positive, a size is negative, a number is not finite, or the
    measurements cannot tell the unknowns apart.
    """
    sizes, measured = _column("sizes", sizes), _column("seconds", seconds)
    if len(sizes) != len(measured):
        raise ValueError(f"{len(sizes)} sizes but {len(measured)} times: there must be one time per size")
    if np.any(sizes < 0):
        raise ValueError(f"a size is at least 0 bytes, not {sizes[sizes < 0][0]:g}")
    if np.any(measured <= 0):
        raise ValueError(f"a measured time is above 0 seconds, not {measured[measured <= 0][0]:g}")

    price = cost(sizes) if callable(cost) else cost
    columns = [price.steps, price.bytes_on_path] + ([price.bytes_reduced] if with_reduction else [])
    try:
        design = np.stack([np.broadcast_to(np.asarray(column, np.float64), sizes.shape) for column in columns], axis=1)
    except ValueError:
        shape = np.shape(price.steps)
        raise ValueError(f"the cost has shape {shape}, not one entry for each of {len(sizes)} sizes") from None
    relative = design / measured[:, None]
    scale = np.linalg.norm(relative, axis=0)
    # Columns of length 1, as α and β differ by many powers of ten; a column of zeros then still counts as missing.
    scaled = relative / np.where(scale > 0, scale, 1)
    if np.linalg.matrix_rank(scaled, tol=1e-9) < len(columns):
        unknowns = "α, β and γ" if with_reduction else "α and β"
        raise ValueError(
            f"these {len(sizes)} measurements cannot tell {unknowns} apart: more sizes are needed"
            + (", and other collectives or numbers of ranks" if with_reduction else "")
        )
    solution, _ = nnls(scaled, np.ones(len(sizes)))
    found = solution / scale
    alpha, beta, gamma = (*found, 0.0)[:3]
    return Fit(float(alpha), float(beta), float(gamma), measured, design @ found)


def _column(name: str, values: ArrayLike) -> np.ndarray:
    try:
        column = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be numbers") from None
    if column.ndim != 1:
        raise ValueError(f"{name} must be a list of numbers, not an array of shape {column.shape}")
    if not np.all(np.isfinite(column)):
        raise ValueError(f"{name} holds numbers that are not finite")
    return column
