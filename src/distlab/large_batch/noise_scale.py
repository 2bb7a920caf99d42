"""How large a batch is worth it: predicted by the gradient noise scale, and fitted to measured steps.

McCandlish, Kaplan, Amodei and others (2018), arXiv:1812.06162.

The noise scale compares how much the gradients of single samples differ with what they have in common: B_simple =
tr Σ / |G|² (section 2.2), estimated from two batch sizes (appendix A.1). G is the true gradient, Σ the covariance of a
single sample's gradient.

The trade-off is the bend between "twice the batch, half the steps" and "twice the batch, the same steps" (section 2.3):
with the best learning rate for each batch size B the steps to a target are S = S_min (1 + B_crit / B), and the samples
E = B S = E_min (1 + B / B_crit), where E_min = B_crit S_min.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from distlab.runtime.errors import PlainError


class CannotEstimate(PlainError, ValueError):
    """The batch sizes or the squared norms do not allow an estimate."""


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


def estimate(small_batch: int, big_batch: int, small_squares: ArrayLike, big_squares: ArrayLike) -> NoiseScale:
    """Estimate from squared norms of gradients that are means over two batch sizes.

    small_squares: |g|² of batches of `small_batch` samples, one or more for each step.  big_squares: |g|² of batches of
    `big_batch`.  In data-parallel training the ranks' own gradients and the mean after the all-reduce. Both estimates
    are unbiased for each step, and noisy; so they are averaged over all steps, and only then divided.

    Raises CannotEstimate unless small_batch < big_batch and both have numbers.
    """
    if not 0 < small_batch < big_batch:
        raise CannotEstimate(
            f"Batches of {small_batch} and {big_batch} give no estimate: the second must be the larger one; "
            "with one rank, divide its batch into parts."
        )
    if not np.size(small_squares) or not np.size(big_squares):
        raise CannotEstimate("There are no squared norms to estimate from; record them in at least one step.")
    small, big = (float(np.mean(np.asarray(squares, float))) for squares in (small_squares, big_squares))
    squared_gradient = (big_batch * big - small_batch * small) / (big_batch - small_batch)
    variance = (small - big) / (1 / small_batch - 1 / big_batch)
    return NoiseScale(squared_gradient, variance)


class Tradeoff(NamedTuple):
    """least_steps: S_min, even with a batch without limit.  least_samples: E_min, even with batches of one sample."""

    least_steps: float
    least_samples: float

    @property
    def critical_batch(self) -> float:
        """B_crit = E_min / S_min: here both the steps and the samples are twice their least number."""
        return self.least_samples / self.least_steps

    def steps(self, batch: float) -> float:
        """Steps to the target with that batch size."""
        return self.least_steps + self.least_samples / batch


def fit_tradeoff(batches: ArrayLike, steps: ArrayLike) -> Tradeoff:
    """The trade-off with the least squared relative errors against the `steps` measured with each of the `batches`.

    Raises CannotEstimate for fewer than two batch sizes.
    """
    sizes, counts = np.ravel(np.asarray(batches, float)), np.ravel(np.asarray(steps, float))
    if len(set(sizes)) < 2:
        raise CannotEstimate("A trade-off takes batches of at least two sizes.")
    terms = np.stack([1 / counts, 1 / (sizes * counts)], axis=1)
    least_steps, least_samples = np.linalg.lstsq(terms, np.ones(len(counts)), rcond=None)[0]
    return Tradeoff(float(least_steps), float(least_samples))
