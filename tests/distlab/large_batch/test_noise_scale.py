"""The noise-scale estimator on gradients with known mean and covariance; the bend on curves with a known one."""

from collections.abc import Callable

import numpy as np
import pytest

from distlab.large_batch import noise_scale

MEAN = np.array([0.6, -0.8, 0.0, 1.2, 0.4])
# Not the identity: tr Σ counts, not the largest or the first variance.
SPREAD = np.array([[2.0, 0, 0, 0, 0], [1, 1, 0, 0, 0], [0, 0, 3, 0, 0], [0, 0.5, 0, 0.5, 0], [0, 0, 0, 0, 1]])
SQUARED_MEAN = float(MEAN @ MEAN)
TRACE = float(np.trace(SPREAD @ SPREAD.T))
RANKS, SMALL = 8, 4
Estimator = Callable[[int, int, np.ndarray, np.ndarray], tuple[float, float]]


def squares_of_ranks(steps: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """|g|² of the ranks' own means (steps, ranks), and of the mean over all of them (steps,)."""
    normal = np.random.default_rng(seed).standard_normal((steps, RANKS, SMALL, len(MEAN)))
    own = (MEAN + normal @ SPREAD.T).mean(axis=2)
    return (own**2).sum(axis=2), (own.mean(axis=1) ** 2).sum(axis=1)


def is_right(estimator: Estimator) -> bool:
    """Whether mean and trace come out within 2 %, which is over four standard deviations with so many steps."""
    squared, trace = estimator(SMALL, SMALL * RANKS, *squares_of_ranks(40_000, seed=1))
    return abs(squared / SQUARED_MEAN - 1) < 0.02 and abs(trace / TRACE - 1) < 0.02


@pytest.mark.slow
def test_the_estimate_is_the_known_mean_and_covariance() -> None:
    assert is_right(noise_scale.estimate)


def big_gradient_for_the_true_one(small: int, big: int, small_squares: np.ndarray, big_squares: np.ndarray) -> tuple:
    return big_squares.mean(), small * (small_squares.mean() - big_squares.mean())


def small_gradient_for_noise_alone(small: int, big: int, small_squares: np.ndarray, big_squares: np.ndarray) -> tuple:
    squared = (big * big_squares.mean() - small * small_squares.mean()) / (big - small)
    return squared, small * small_squares.mean()


def sizes_swapped(small: int, big: int, small_squares: np.ndarray, big_squares: np.ndarray) -> tuple:
    return noise_scale.estimate(small, big, big_squares, small_squares)


def without_the_sizes(small: int, big: int, small_squares: np.ndarray, big_squares: np.ndarray) -> tuple:
    return noise_scale.estimate(1, big // small, small_squares, big_squares)


@pytest.mark.slow
@pytest.mark.parametrize(
    "biased",
    [big_gradient_for_the_true_one, small_gradient_for_noise_alone, sizes_swapped, without_the_sizes],
    ids=lambda biased: biased.__name__,
)
def test_a_biased_estimate_is_noticed(biased: Estimator) -> None:
    assert not is_right(biased)


@pytest.mark.slow
def test_the_scale_is_the_ratio_of_the_averages() -> None:
    small, big = squares_of_ranks(40_000, seed=2)
    whole = noise_scale.estimate(SMALL, SMALL * RANKS, small, big)
    assert whole.batch == pytest.approx(TRACE / SQUARED_MEAN, rel=0.03)
    # The average of the ratios of single steps is off: there the denominator is noisy.
    ratios = [
        noise_scale.estimate(SMALL, SMALL * RANKS, ranks, [union]).batch
        for ranks, union in zip(small, big, strict=True)
    ]
    assert np.mean(ratios) != pytest.approx(TRACE / SQUARED_MEAN, rel=0.05)


def test_noise_alone_has_no_finite_scale() -> None:
    assert noise_scale.NoiseScale(squared_gradient=-0.01, variance=3.0).batch == float("inf")


def test_what_allows_no_estimate_is_said() -> None:
    with pytest.raises(noise_scale.CannotEstimate, match="larger"):
        noise_scale.estimate(8, 8, [1.0], [1.0])
    with pytest.raises(noise_scale.CannotEstimate, match="no squared norms"):
        noise_scale.estimate(8, 64, [], [])


def test_the_bend_of_a_known_curve_is_found() -> None:
    batches = np.array([4, 8, 16, 32, 64, 128, 256, 1024])
    exact = noise_scale.fit_tradeoff(batches, 36 * (1 + 20 / batches))
    assert exact == pytest.approx((36, 720))
    assert exact.critical_batch == pytest.approx(20)
    assert exact.steps(20) == pytest.approx(2 * 36)


def test_the_bend_is_found_in_noisy_steps_too() -> None:
    batches = np.geomspace(2, 2000, 12)
    noisy = 36 * (1 + 20 / batches) * np.random.default_rng(0).uniform(0.9, 1.1, 12)
    assert noise_scale.fit_tradeoff(batches, noisy).critical_batch == pytest.approx(20, rel=0.25)


def test_perfect_scaling_alone_has_no_bend_among_the_batches() -> None:
    batches = np.array([1, 2, 4, 8])
    assert abs(noise_scale.fit_tradeoff(batches, 800 / batches).least_steps) < 1e-6
