"""The gradient noise scale: how much the gradients of single samples differ, against what they have in common.

McCandlish, Kaplan, Amodei and others (2018), arXiv:1812.06162: the scale B_simple = tr Σ / |G|² in section 2.2, the
estimate from two batch sizes in appendix A.1. G is the true gradient, Σ the covariance of a single sample's gradient.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from distlab.runtime.errors import PlainError


class CannotEstimate(PlainError, ValueError):
    """The batch sizes or the numbers given do not allow an estimate."""


class NoiseScale(NamedTuple):
    """An estimate of |G|², the squared norm of the true gradient, and of tr Σ, the variance of a sample's gradient."""

    squared_gradient: float
    variance: float

    @property
    def batch(self) -> float:
        """B_simple = tr Σ / |G|², in samples: with this global batch, noise and gradient are equally large.

        Infinite when the noise hides the gradient completely, so that the estimate of |G|² is not positive.
        """
        return self.variance / self.squared_gradient if self.squared_gradient > 0 else float("inf")


def estimate(
    small_batch: int, big_batch: int, small_squares: Sequence[float], big_squares: Sequence[float]
) -> NoiseScale:
    """Estimate from squared norms of gradients that are means over two batch sizes.

    small_squares: |g|² of batches of `small_batch` samples, one or more for each step.  big_squares: |g|² of batches of
    `big_batch`.  In data-parallel training the ranks' own gradients and the mean after the all-reduce. Both estimates
    are unbiased for each step, and noisy; so they are averaged over all steps given, and only then divided.

    Raises CannotEstimate unless small_batch < big_batch and both have numbers.
    """
    if not 0 < small_batch < big_batch:
        raise CannotEstimate(
            f"Batches of {small_batch} and {big_batch} give no estimate: the second must be the larger one; "
            "with one rank, divide its batch into parts."
        )
    if not np.size(small_squares) or not np.size(big_squares):
        raise CannotEstimate("There are no squared norms to estimate from; record them in at least one step.")
    small, big = float(np.mean(small_squares)), float(np.mean(big_squares))
    squared_gradient = (big_batch * big - small_batch * small) / (big_batch - small_batch)
    variance = (small - big) / (1 / small_batch - 1 / big_batch)
    return NoiseScale(squared_gradient, variance)
