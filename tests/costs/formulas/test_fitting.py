"""Fitting α, β and γ: planted values come back, and measurements that cannot be fitted are refused."""

import numpy as np
import pytest

from distlab import costs
from distlab.costs import Cost, fit

SIZES = np.logspace(2, 8, 13)
ALPHA, BETA, GAMMA = 7e-6, 3e-10, 5e-11


def ring_of_four(sizes: np.ndarray) -> Cost:
    return costs.all_reduce("ring", 4, sizes)


def test_planted_values_come_back_exactly() -> None:
    found = fit(SIZES, ALPHA + BETA * SIZES)
    assert (found.latency, found.seconds_per_byte) == pytest.approx((ALPHA, BETA), rel=1e-9)
    assert found.seconds_per_byte_reduced == 0
    assert found.bandwidth == pytest.approx(1 / BETA)
    assert found.largest_residual < 1e-12


def test_planted_values_come_back_from_an_all_reduce() -> None:
    found = fit(SIZES, ring_of_four(SIZES).seconds(ALPHA, BETA), ring_of_four)
    assert (found.latency, found.seconds_per_byte) == pytest.approx((ALPHA, BETA), rel=1e-9)
    again = fit(SIZES, ring_of_four(SIZES).seconds(ALPHA, BETA), ring_of_four(SIZES))
    assert again.latency == found.latency


def test_a_fit_predicts_another_collective() -> None:
    found = fit(SIZES, ring_of_four(SIZES).seconds(ALPHA, BETA), ring_of_four)
    other = costs.all_reduce("halving_doubling", 16, 1e6)
    assert found.seconds(other) == pytest.approx(other.seconds(ALPHA, BETA))


def test_noise_leaves_residuals_of_its_size() -> None:
    random = np.random.default_rng(0)
    noise = 1 + 0.05 * random.standard_normal((40, len(SIZES)))
    found = [fit(SIZES, (ALPHA + BETA * SIZES) * factors) for factors in noise]
    assert np.median([one.latency for one in found]) == pytest.approx(ALPHA, rel=0.03)
    assert np.median([one.seconds_per_byte for one in found]) == pytest.approx(BETA, rel=0.03)
    assert np.mean([one.typical_residual for one in found]) == pytest.approx(0.05, rel=0.2)
    one = found[0]
    np.testing.assert_allclose(one.residuals, (one.predicted - one.measured) / one.measured)
    assert one.largest_residual == np.abs(one.residuals).max() >= one.typical_residual


def test_small_messages_count_as_much_as_large_ones() -> None:
    """Ordinary least squares sees only the largest sizes: it gets α wrong by a multiple."""
    seconds = (ALPHA + BETA * SIZES) * np.where(np.arange(len(SIZES)) % 2, 1.03, 0.97)
    ordinary = np.polyfit(SIZES, seconds, 1)[1]
    assert fit(SIZES, seconds).latency == pytest.approx(ALPHA, rel=0.1)
    assert abs(ordinary - ALPHA) > ALPHA


def test_gamma_needs_and_gets_several_collectives() -> None:
    sizes = np.concatenate([SIZES, SIZES])
    first, second = costs.all_reduce("tree", 8, SIZES), costs.broadcast_tree(8, SIZES)
    parts = {
        name: np.concatenate([getattr(first, name) + 0 * SIZES, getattr(second, name) + 0 * SIZES])
        for name in ("ranks", "steps", "bytes_on_path", "bytes_reduced", "bytes_sent", "largest_bytes_sent")
    }
    both = Cost(**parts)
    found = fit(sizes, both.seconds(ALPHA, BETA, GAMMA), both, with_reduction=True)
    planted = (ALPHA, BETA, GAMMA)
    assert (found.latency, found.seconds_per_byte, found.seconds_per_byte_reduced) == pytest.approx(planted, rel=1e-6)
    with pytest.raises(ValueError, match=r"cannot tell α, β and γ apart.*other collectives"):
        fit(SIZES, ring_of_four(SIZES).seconds(ALPHA, BETA, GAMMA), ring_of_four, with_reduction=True)


def test_nothing_comes_out_negative() -> None:
    falling = fit([1, 1000, 100_000], [3e-6, 2e-6, 1e-6])
    assert falling.seconds_per_byte == 0
    assert falling.bandwidth == float("inf")
    assert falling.latency > 0
    steep = fit([1000, 2000, 4000], [1e-6, 3e-6, 7e-6])
    assert steep.latency == 0


@pytest.mark.parametrize(
    ("sizes", "seconds", "message"),
    [
        ([1, 2, 3], [1, 2], "3 sizes but 2 times"),
        ([1, 2], [1, 0], "time is above 0 seconds, not 0"),
        ([1, 2], [1, -2], "time is above 0 seconds, not -2"),
        ([-1, 2], [1, 2], "at least 0 bytes, not -1"),
        ([1, float("nan")], [1, 2], "sizes holds numbers that are not finite"),
        ([1, 2], [1, float("inf")], "seconds holds numbers that are not finite"),
        ([[1, 2]], [1, 2], "sizes must be a list of numbers, not an array of shape"),
        (["a", "b"], [1, 2], "sizes must be numbers"),
        ([100], [1], "1 measurements cannot tell α and β apart"),
        ([100, 100, 100], [1, 2, 3], "cannot tell α and β apart: more sizes"),
        ([], [], "0 measurements cannot tell"),
    ],
)
def test_unusable_measurements_are_refused(sizes: list, seconds: list, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit(sizes, seconds)


def test_a_cost_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match=r"the cost has shape \(13,\), not one entry for each of 2"):
        fit([1, 2], [1, 2], ring_of_four(SIZES))
