"""Amdahl's law: what a fixed part of the time does to the speed-up, fitted to measured times."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import nnls

from distlab.costs.formulas.cost import Numbers, checked


@dataclass(frozen=True)
class Amdahl:
    """T(p) = serial + parallel / p, in seconds (Amdahl 1967): the parallel part is divided, the serial one is not."""

    serial_seconds: float
    parallel_seconds: float

    def seconds(self, ranks: ArrayLike) -> Numbers:
        """The time on so many ranks."""
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

    ranks, seconds: (n,), the measured time on each number of ranks. Raises ValueError when the shapes differ, a time
    is not positive and finite, or fewer than two different numbers of ranks were measured.
    """
    ranks, seconds = np.atleast_1d(checked(ranks)[0]), np.asarray(seconds, np.float64)
    if ranks.shape != seconds.shape or ranks.ndim != 1:
        raise ValueError(f"there must be one time for each number of ranks, not {seconds.shape} for {ranks.shape}")
    if not np.all(np.isfinite(seconds) & (seconds > 0)):
        raise ValueError("a measured time is finite and above 0 seconds")
    if len(np.unique(ranks)) < 2:
        raise ValueError("times on at least two numbers of ranks are needed")
    design = np.stack([np.ones_like(ranks), 1 / ranks], axis=1) / seconds[:, None]
    (serial, parallel), _ = nnls(design, np.ones_like(seconds))
    return Amdahl(float(serial), float(parallel))


def serial_share(speedup: ArrayLike, ranks: ArrayLike) -> Numbers:
    """The serial share that one measured speed-up S on p > 1 ranks implies: (1/S − 1/p) / (1 − 1/p).

    The metric of Karp and Flatt, CACM 33(5):539–543, 1990. The same for every p: a fixed part; growing with p: a cost
    that grows with the ranks. Raises ValueError for fewer than 2 ranks or a speed-up that is not positive.
    """
    p, speedup = checked(ranks)[0], np.asarray(speedup, np.float64)
    if np.any(p < 2) or not np.all(speedup > 0):
        raise ValueError("it takes at least 2 ranks and a speed-up above 0")
    return (1 / speedup - 1 / p) / (1 - 1 / p)
