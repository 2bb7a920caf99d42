"""The noise-scale estimator on gradients with known mean and covariance; the bend on curves with a known one."""

import numpy as np
import pytest

from distlab.large_batch import noise_scale

MEAN = np.array([0.6, -0.8, 0.0, 1.2, 0.4])
# Not the identity: tr Σ counts, not the largest or the first variance.
SPREAD = np.array([[2.0, 0, 0, 0, 0], [1, 1, 0, 0, 0], [0, 0, 3, 0, 0], [0, 0.5, 0, 0.5, 0], [0, 0, 0, 0, 1]])
SQUARED_MEAN = float(MEAN @ MEAN)
TRACE = float(np.trace(SPREAD @ SPREAD.T))
RANKS, SMALL = 8, 4


def squares_of_ranks(steps: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """|g|² of the ranks' own means (steps, ranks), and of the mean over all of them (steps,)."""
    normal = np.random.default_rng(seed).standard_normal((steps, RANKS, SMALL, len(MEAN)))
    own = (MEAN + normal @ SPREAD.T).mean(axis=2)
    return (own**2).sum(axis=2), (own.mean(axis=1) ** 2).sum(axis=1)


@pytest.mark.slow
def test_the_estimate_is_the_known_mean_and_covariance_and_the_scale_the_ratio_of_the_averages() -> None:
    """Within 2 %, which is over four standard deviations with so many steps."""
    small, big = squares_of_ranks(40_000, seed=1)
    whole = noise_scale.estimate(SMALL, SMALL * RANKS, small, big)
    assert tuple(whole) == pytest.approx((SQUARED_MEAN, TRACE), rel=0.02)
    assert whole.batch == pytest.approx(TRACE / SQUARED_MEAN, rel=0.03)
    # The average of the ratios of single steps is off: there the denominator is noisy.
    ratios = [
        noise_scale.estimate(SMALL, SMALL * RANKS, ranks, [union]).batch
        for ranks, union in zip(small[:4_000], big[:4_000], strict=True)
    ]
    assert np.mean(ratios) != pytest.approx(TRACE / SQUARED_MEAN, rel=0.05)


def test_the_bend_of_a_known_curve_is_found() -> None:
    batches = np.array([4, 8, 16, 32, 64, 128, 256, 1024])
    exact = noise_scale.fit_tradeoff(batches, 36 * (1 + 20 / batches))
    assert exact == pytest.approx((36, 720))
    assert exact.critical_batch == pytest.approx(20)
    assert exact.steps(20) == pytest.approx(2 * 36)
