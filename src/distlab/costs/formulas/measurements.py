"""What measured times say: α, β and γ of a network, Amdahl's serial part, algorithm and bus bandwidth.

The bandwidths are defined as in NVIDIA's nccl-tests (doc/PERFORMANCE.md).
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from distlab.costs.formulas.collectives import message
from distlab.costs.formulas.cost import Array, Cost, Numbers, checked, numbers, together
from distlab.runtime.arguments import require_kind
from distlab.runtime.lookups import look_up


@dataclass(frozen=True)
class Fit:
    """The α–β–γ model that comes closest to measurements.

    latency: α in seconds. seconds_per_byte: β. seconds_per_byte_reduced: γ, 0 unless it was asked for.
    measured, predicted: seconds, float64 (n,).
    overhead: seconds of each collective that depend on neither ranks nor bytes, 0 unless they were asked for.
    """

    latency: float
    seconds_per_byte: float
    seconds_per_byte_reduced: float
    measured: Array
    predicted: Array
    overhead: float = 0.0

    @property
    def residuals(self) -> Array:
        """(predicted − measured) / measured, float64 (n,): 0.1 where the model says 10 % too much."""
        return self.predicted / self.measured - 1

    @property
    def typical_residual(self) -> float:
        """The root of the mean squared relative error: what the fit made as small as it can be."""
        return float(np.sqrt(np.mean(self.residuals**2)))

    @property
    def bandwidth(self) -> float:
        """1/β in bytes per second; infinite when the times do not grow with the size."""
        return 1 / self.seconds_per_byte if self.seconds_per_byte else float("inf")

    def seconds(self, cost: Cost) -> Numbers:
        """The time of another collective, or another size, by this fit; raises WrongArgument for what is no Cost."""
        require_kind("cost", cost, Cost, 'a cost, such as costs.all_reduce("ring", 4, 1e6)')
        return self.overhead + cost.seconds(self.latency, self.seconds_per_byte, self.seconds_per_byte_reduced)


def fit(
    sizes: ArrayLike,
    seconds: ArrayLike,
    cost: Cost | Callable[[Array], Cost] = message,
    *,
    with_reduction: bool = False,
    with_overhead: bool = False,
) -> Fit:
    """α and β (γ `with_reduction`, a constant `with_overhead`) by relative least squares, none of them negative.

    sizes: bytes, whole arrays as in `collectives`; (n,).
    seconds: the measured time of each, (n,); one measurement each, or the median of several.
    cost: what was measured: a `Cost` with one entry per measurement, or a function from sizes to it, for example
        `lambda n: all_reduce("ring", 4, n)`. By default one message from rank to rank.
    with_reduction: find γ too. Then the measurements must be of several collectives or numbers of ranks, as within one
        the bytes sent and the bytes added are proportional.
    with_overhead: find also the seconds that each collective takes whatever the ranks and bytes, such as agreeing on
        what to send. Then the measurements must be of several collectives or numbers of ranks, too.

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
    example = 'a Cost, or a function from sizes to one, such as `lambda n: costs.all_reduce("ring", 4, n)`'
    require_kind("what was measured", price, Cost, example)
    unknowns = {"α": price.steps, "β": price.bytes_on_path}
    if with_reduction:
        unknowns["γ"] = price.bytes_reduced
    if with_overhead:
        unknowns["the overhead"] = np.ones(1)
    try:
        design = np.stack(
            [np.broadcast_to(np.asarray(column, np.float64), sizes.shape) for column in unknowns.values()], axis=1
        )
    except ValueError:
        shape = np.shape(price.steps)
        raise ValueError(f"the cost has shape {shape}, not one entry for each of {len(sizes)} sizes") from None
    relative = design / measured[:, None]
    scale = np.linalg.norm(relative, axis=0)
    # Columns of length 1, as α and β differ by many powers of ten; a column of zeros then still counts as missing.
    scaled = relative / np.where(scale > 0, scale, 1)
    if np.linalg.matrix_rank(scaled, tol=1e-9) < len(unknowns):
        *names, last = unknowns
        raise ValueError(
            f"these {len(sizes)} measurements cannot tell {', '.join(names)} and {last} apart: more sizes are needed"
            + (", and other collectives or numbers of ranks" if len(unknowns) > 2 else "")
        )
    solution = _solution_without_negatives(scaled, np.ones(len(sizes)))
    fitted = solution / scale
    solved = dict(zip(unknowns, map(float, fitted), strict=True))
    gamma, overhead = solved.get("γ", 0.0), solved.get("the overhead", 0.0)
    return Fit(solved["α"], solved["β"], gamma, measured, design @ fitted, overhead)


@dataclass(frozen=True)
class Amdahl:
    """T(p) = serial + parallel / p, in seconds (Amdahl 1967): the parallel part is divided, the serial one is not."""

    serial_seconds: float
    parallel_seconds: float

    def seconds(self, ranks: ArrayLike) -> Numbers:
        """The time on this many ranks."""
        return self.serial_seconds + self.parallel_seconds / checked(ranks)[0]

    def speedup(self, ranks: ArrayLike) -> Numbers:
        """How many times shorter than on one rank."""
        return self.seconds(1) / self.seconds(ranks)

    @property
    def serial_share(self) -> float:
        """The serial part of the time on one rank, from 0 to 1."""
        return self.serial_seconds / (self.serial_seconds + self.parallel_seconds)

    @property
    def largest_speedup(self) -> float:
        """With any number of ranks; infinite without a serial part."""
        return 1 / self.serial_share if self.serial_seconds else float("inf")


def _solution_without_negatives(design: Array, values: Array) -> Array:
    from scipy.optimize import nnls  # takes a second, and only fits need it

    solution: Array = nnls(design, values)[0]
    return solution


def fit_amdahl(ranks: ArrayLike, seconds: ArrayLike) -> Amdahl:
    """Amdahl's law by relative least squares, neither part negative; a warning if speed-ups seem to be given.

    ranks, seconds: (n,), the measured time on each number of ranks. Raises ValueError when the shapes differ, a time
    is not positive and finite, or fewer than two different numbers of ranks were measured.
    """
    ranks, seconds = np.atleast_1d(checked(ranks)[0]), numbers(seconds, "seconds")
    if ranks.shape != seconds.shape or ranks.ndim != 1:
        raise ValueError(f"there must be one time for each number of ranks, not {seconds.shape} for {ranks.shape}")
    if not np.all(np.isfinite(seconds) & (seconds > 0)):
        raise ValueError("a measured time is finite and above 0 seconds")
    if len(np.unique(ranks)) < 2:
        raise ValueError("times on at least two numbers of ranks are needed")
    design = np.stack([np.ones_like(ranks), 1 / ranks], axis=1) / seconds[:, None]
    serial, parallel = _solution_without_negatives(design, np.ones_like(seconds))
    if parallel == 0 and np.isclose(seconds[np.argmin(ranks)], 1):
        warnings.warn(
            "These numbers begin at 1 and do not fall, as speed-ups; seconds are needed. All work counts as serial.",
            stacklevel=2,
        )
    return Amdahl(float(serial), float(parallel))


def serial_share(speedup: ArrayLike, ranks: ArrayLike) -> Numbers:
    """The serial share that one measured speed-up S on p > 1 ranks implies: (1/S − 1/p) / (1 − 1/p).

    The metric of Karp and Flatt, CACM 33(5):539–543, 1990. The same for every p: a fixed part; growing with p: a cost
    that grows with the ranks. Raises ValueError for fewer than 2 ranks or a speed-up that is not positive.
    """
    p, speedup = together(checked(ranks)[0], "ranks", numbers(speedup, "speed-up"), "speed-ups")
    if np.any(p < 2) or not np.all(speedup > 0):
        raise ValueError("it takes at least 2 ranks and a speed-up above 0")
    share: Numbers = ((1 / speedup - 1 / p) / (1 - 1 / p))[()]
    return share


BUS_FACTOR: dict[str, Callable[[Numbers], Numbers]] = {
    "all_reduce": lambda p: 2 * (p - 1) / p,
    "reduce_scatter": lambda p: (p - 1) / p,
    "all_gather": lambda p: (p - 1) / p,
    "all_to_all": lambda p: (p - 1) / p,
    "gather": lambda p: (p - 1) / p,
    "scatter": lambda p: (p - 1) / p,
    "broadcast": lambda p: np.ones_like(p),
    "reduce": lambda p: np.ones_like(p),
}
"""What the algorithm bandwidth is multiplied with, per collective, as a function of the number of ranks.

PERFORMANCE.md lists all but gather and scatter; those two are as in nccl-tests' gather.cu and scatter.cu.
"""


def algorithm_bandwidth(array_bytes: ArrayLike, seconds: ArrayLike) -> Numbers:
    """Bytes per second that a user sees, n / t. It falls with more ranks even when the links stay as fast.

    `array_bytes` is the size of the whole array: for reduce-scatter and all-gather all ranks' chunks together. Raises
    ValueError for negative bytes or seconds that are not positive.
    """
    _, n = checked(1, array_bytes)
    n, seconds = together(n, "bytes", numbers(seconds, "seconds"), "seconds")
    if not np.all(np.isfinite(seconds) & (seconds > 0)):
        raise ValueError("every number of seconds is finite and above 0")
    bandwidth: Numbers = (n / seconds)[()]
    return bandwidth


def bus_bandwidth(collective: str, ranks: ArrayLike, array_bytes: ArrayLike, seconds: ArrayLike) -> Numbers:
    """The algorithm bandwidth times the collective's factor, in bytes per second: comparable with the link's speed.

    The factor is what the collective must at least move per rank (all-reduce 2(p−1)/p; reduce-scatter, all-gather,
    all-to-all, gather and scatter (p−1)/p; broadcast and reduce 1). A network that adds on the way (in-network
    reduction) moves less, so that this can then exceed the link's speed. Raises ValueError as `algorithm_bandwidth`
    does, and for an unknown collective.
    """
    factor = look_up(BUS_FACTOR, collective, "collective")(checked(ranks)[0])
    return algorithm_bandwidth(array_bytes, seconds) * factor


def _column(name: str, values: ArrayLike) -> Array:
    try:
        column = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be numbers") from None
    if column.ndim != 1:
        raise ValueError(f"{name} must be a list of numbers, not an array of shape {column.shape}")
    if not np.all(np.isfinite(column)):
        raise ValueError(f"{name} contains numbers that are not finite")
    return column
