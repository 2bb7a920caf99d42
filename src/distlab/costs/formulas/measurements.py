"""What measured times say: α and β of a network, Amdahl's serial part, algorithm and bus bandwidth.

The bandwidths are defined as in NVIDIA's nccl-tests (doc/PERFORMANCE.md).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from distlab.costs.formulas.collectives import message
from distlab.costs.formulas.cost import Array, Cost, Numbers, checked
from distlab.runtime.lookups import look_up


@dataclass(frozen=True)
class Fit:
    """The α–β–γ model that comes closest to measurements.

    latency: α in seconds. seconds_per_byte: β. measured, predicted: seconds, float64 (n,).
    overhead: seconds of each collective that depend on neither ranks nor bytes, 0 unless they were asked for.
    """

    latency: float
    seconds_per_byte: float
    measured: Array
    predicted: Array
    overhead: float = 0.0

    @property
    def bandwidth(self) -> float:
        """1/β in bytes per second; infinite when the times do not grow with the size."""
        return 1 / self.seconds_per_byte if self.seconds_per_byte else float("inf")

    def seconds(self, cost: Cost) -> Numbers:
        """The time of another collective, or another size, by this fit."""
        return self.overhead + cost.seconds(self.latency, self.seconds_per_byte)


def fit(
    sizes: ArrayLike,
    seconds: ArrayLike,
    cost: Cost | Callable[[Array], Cost] = message,
    *,
    with_overhead: bool = False,
) -> Fit:
    """α and β, and a constant `with_overhead`, by relative least squares, none of them negative.

    sizes: bytes, whole arrays as in `collectives`; (n,).
    seconds: the measured time of each, (n,); one measurement each, or the median of several.
    cost: what was measured: a `Cost` with one entry per measurement, or a function from sizes to it, for example
        `lambda n: all_reduce("ring", 4, n)`. By default one message from rank to rank.
    with_overhead: find also the seconds that each collective takes whatever the ranks and bytes, such as agreeing on
        what to send. Then the measurements must be of several collectives or numbers of ranks, as within one all steps
        are alike.

    The sum of ((predicted − measured) / measured)² is smallest: ordinary least squares would look at the largest arrays
    only, whose times are thousands of times longer, and get α wrong. A number that would come out negative is 0.

    Raises ValueError when the measurements cannot tell the unknowns apart, or a time is not above 0.
    """
    sizes, measured = np.asarray(sizes, np.float64), np.asarray(seconds, np.float64)
    if not np.all(measured > 0):
        raise ValueError("a measured time is above 0 seconds")
    price = cost(sizes) if callable(cost) else cost
    unknowns = {"α": price.steps, "β": price.bytes_on_path}
    if with_overhead:
        unknowns["the overhead"] = np.ones(1)
    design = np.stack([np.broadcast_to(column, measured.shape) for column in unknowns.values()], axis=1)
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
    from scipy.optimize import nnls  # takes a second to import, and only fits need it

    fitted = nnls(scaled, np.ones(len(sizes)))[0] / scale
    latency, seconds_per_byte, *overhead = map(float, fitted)
    return Fit(latency, seconds_per_byte, measured, design @ fitted, *overhead)


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


def fit_amdahl(ranks: ArrayLike, seconds: ArrayLike) -> Amdahl:
    """Amdahl's law by relative least squares, neither part negative.

    ranks, seconds: (n,), the measured time on each number of ranks. Raises ValueError for impossible ranks, for times
    that are not above 0, and for fewer than two different numbers of ranks.
    """
    p, seconds = checked(ranks)[0], np.asarray(seconds, np.float64)
    if len(np.unique(p)) < 2 or not np.all(seconds > 0):
        raise ValueError("times above 0 on at least two numbers of ranks are needed")
    from scipy.optimize import nnls  # takes a second to import, and only fits need it

    design = np.stack([np.ones_like(p), 1 / p], axis=1) / seconds[:, None]
    serial, parallel = nnls(design, np.ones_like(seconds))[0]
    return Amdahl(float(serial), float(parallel))


def serial_share(speedup: ArrayLike, ranks: ArrayLike) -> Numbers:
    """The serial share that one measured speed-up S on p > 1 ranks implies: (1/S − 1/p) / (1 − 1/p).

    The metric of Karp and Flatt, CACM 33(5):539–543, 1990. The same for every p: a fixed part; growing with p: a cost
    that grows with the ranks.
    """
    p = checked(ranks)[0]
    share: Numbers = ((1 / np.asarray(speedup) - 1 / p) / (1 - 1 / p))[()]
    return share


BUS_FACTOR: dict[str, Callable[[Numbers], Numbers]] = {
    "all_reduce": lambda p: 2 * (p - 1) / p,
    **dict.fromkeys(("reduce_scatter", "all_gather", "all_to_all", "gather", "scatter"), lambda p: (p - 1) / p),
    **dict.fromkeys(("broadcast", "reduce"), np.ones_like),
}
"""What the algorithm bandwidth is multiplied with, per collective, as a function of the number of ranks.

PERFORMANCE.md lists all but gather and scatter; those two are as in nccl-tests' gather.cu and scatter.cu.
"""


def algorithm_bandwidth(array_bytes: ArrayLike, seconds: ArrayLike) -> Numbers:
    """Bytes per second that a user sees, n / t. It falls with more ranks even when the links stay as fast.

    `array_bytes` is the size of the whole array: for reduce-scatter and all-gather all ranks' chunks together.
    """
    bandwidth: Numbers = (np.asarray(array_bytes) / np.asarray(seconds))[()]
    return bandwidth


def bus_bandwidth(collective: str, ranks: ArrayLike, array_bytes: ArrayLike, seconds: ArrayLike) -> Numbers:
    """The algorithm bandwidth times the collective's factor, in bytes per second: comparable with the link's speed.

    The factor is what the collective must at least move per rank (all-reduce 2(p−1)/p; reduce-scatter, all-gather,
    all-to-all, gather and scatter (p−1)/p; broadcast and reduce 1). A network that adds on the way (in-network
    reduction) moves less, so that this can then exceed the link's speed. Raises ValueError for impossible ranks
    and for an unknown collective.
    """
    factor = look_up(BUS_FACTOR, collective, "collective")(checked(ranks)[0])
    return algorithm_bandwidth(array_bytes, seconds) * factor
