"""Algorithm bandwidth and bus bandwidth, by the definition of NVIDIA's nccl-tests (doc/PERFORMANCE.md)."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from distlab.costs.formulas.cost import Numbers, checked

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
    seconds = np.asarray(seconds, np.float64)
    if not np.all(np.isfinite(seconds) & (seconds > 0)):
        raise ValueError("every number of seconds is finite and above 0")
    return np.divide(n, seconds)[()]


def bus_bandwidth(collective: str, ranks: ArrayLike, array_bytes: ArrayLike, seconds: ArrayLike) -> Numbers:
    """The algorithm bandwidth times the collective's factor, in bytes per second: comparable with the link's speed.

    The factor is what the collective must at least move per rank (all-reduce 2(p−1)/p; reduce-scatter, all-gather,
    all-to-all, gather and scatter (p−1)/p; broadcast and reduce 1). A network that adds on the way (in-network
    reduction) moves less, so that this can then exceed the link's speed. Raises ValueError as `algorithm_bandwidth`
    does, and for an unknown collective.
    """
    if collective not in BUS_FACTOR:
        raise ValueError(f"there is no collective {collective!r}; there are {', '.join(BUS_FACTOR)}")
    p, _ = checked(ranks)
    return algorithm_bandwidth(array_bytes, seconds) * BUS_FACTOR[collective](p)
