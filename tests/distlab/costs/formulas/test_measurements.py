"""Fits of made-up times give back what they were made of, and what cannot be measured is refused."""

import numpy as np
import pytest

from distlab import costs
from distlab.costs import Cost, fit

MEGABYTE = 1e6
RANKS = np.array([1, 2, 4, 8])
SIZES = np.logspace(2, 8, 13)
ALPHA, BETA, GAMMA = 7e-6, 3e-10, 5e-11


def ring_of_four(sizes: np.ndarray) -> Cost:
    return costs.all_reduce("ring", 4, sizes)


def test_known_values_come_back_exactly() -> None:
    fitted = fit(SIZES, ALPHA + BETA * SIZES)
    assert (fitted.latency, fitted.seconds_per_byte) == pytest.approx((ALPHA, BETA), rel=1e-9)
    assert fitted.seconds_per_byte_reduced == 0
    assert fitted.bandwidth == pytest.approx(1 / BETA)
    assert np.abs(fitted.residuals).max() < 1e-12


def test_known_values_come_back_from_an_all_reduce() -> None:
    fitted = fit(SIZES, ring_of_four(SIZES).seconds(ALPHA, BETA), ring_of_four)
    assert (fitted.latency, fitted.seconds_per_byte) == pytest.approx((ALPHA, BETA), rel=1e-9)
    again = fit(SIZES, ring_of_four(SIZES).seconds(ALPHA, BETA), ring_of_four(SIZES))
    assert again.latency == fitted.latency


def test_a_fit_predicts_another_collective() -> None:
    fitted = fit(SIZES, ring_of_four(SIZES).seconds(ALPHA, BETA), ring_of_four)
    another = costs.all_reduce("halving_doubling", 16, 1e6)
    assert fitted.seconds(another) == pytest.approx(another.seconds(ALPHA, BETA))


def test_noise_leaves_residuals_of_its_size() -> None:
    random = np.random.default_rng(0)
    noise = 1 + 0.05 * random.standard_normal((40, len(SIZES)))
    fits = [fit(SIZES, (ALPHA + BETA * SIZES) * factors) for factors in noise]
    assert np.median([fitted.latency for fitted in fits]) == pytest.approx(ALPHA, rel=0.03)
    assert np.median([fitted.seconds_per_byte for fitted in fits]) == pytest.approx(BETA, rel=0.03)
    assert np.mean([fitted.typical_residual for fitted in fits]) == pytest.approx(0.05, rel=0.2)
    first = fits[0]
    np.testing.assert_allclose(first.residuals, (first.predicted - first.measured) / first.measured)
    assert np.abs(first.residuals).max() >= first.typical_residual


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
        for name in ("steps", "bytes_on_path", "bytes_reduced", "bytes_sent", "largest_bytes_sent")
    }
    both = Cost(**parts)
    fitted = fit(sizes, both.seconds(ALPHA, BETA, GAMMA), both, with_reduction=True)
    known = (ALPHA, BETA, GAMMA)
    assert (fitted.latency, fitted.seconds_per_byte, fitted.seconds_per_byte_reduced) == pytest.approx(known, rel=1e-6)
    with pytest.raises(ValueError, match=r"cannot tell α, β and γ apart.*other collectives"):
        fit(SIZES, ring_of_four(SIZES).seconds(ALPHA, BETA, GAMMA), ring_of_four, with_reduction=True)


def test_an_overhead_is_found_from_several_numbers_of_ranks() -> None:
    sizes, ranks = np.tile(SIZES, 2), np.repeat([2, 4], len(SIZES))
    cost = costs.all_reduce("ring", ranks, sizes)
    fitted = fit(sizes, 1e-3 + cost.seconds(ALPHA, BETA), cost, with_overhead=True)
    assert (fitted.overhead, fitted.latency, fitted.seconds_per_byte) == pytest.approx((1e-3, ALPHA, BETA))
    assert fitted.seconds(costs.all_reduce("ring", 8, 1e6)) == pytest.approx(1e-3 + 14 * (ALPHA + 1e6 / 8 * BETA))
    with pytest.raises(ValueError, match=r"cannot tell α, β and the overhead apart.*other collectives"):
        fit(SIZES, ring_of_four(SIZES).seconds(ALPHA, BETA), ring_of_four, with_overhead=True)


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
        ([1, float("nan")], [1, 2], "sizes contains numbers that are not finite"),
        ([1, 2], [1, float("inf")], "seconds contains numbers that are not finite"),
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


# Amdahl's law


@pytest.mark.parametrize(("serial", "parallel"), [(10.0, 90.0), (0.0, 5.0), (3.0, 0.0), (1e-3, 7e-3)])
def test_times_made_by_the_law_give_back_its_parts(serial: float, parallel: float) -> None:
    law = costs.fit_amdahl(RANKS, serial + parallel / RANKS)
    assert law.serial_seconds == pytest.approx(serial, abs=1e-9)
    assert law.parallel_seconds == pytest.approx(parallel, abs=1e-9)
    np.testing.assert_allclose(law.seconds(RANKS), serial + parallel / RANKS)


def test_the_share_the_speed_up_and_its_limit_by_hand() -> None:
    law = costs.Amdahl(10.0, 90.0)
    assert law.serial_share == pytest.approx(0.1)
    assert law.largest_speedup == pytest.approx(10)
    assert law.speedup(64) == pytest.approx(1 / (0.1 + 0.9 / 64))
    assert costs.Amdahl(0.0, 1.0).largest_speedup == float("inf")


def test_noisy_times_give_nearly_the_share() -> None:
    generator = np.random.default_rng(11)
    ranks = np.tile(RANKS, 50)
    seconds = (20 + 80 / ranks) * generator.normal(1, 0.02, ranks.shape)
    assert costs.fit_amdahl(ranks, seconds).serial_share == pytest.approx(0.2, abs=0.01)


def test_the_tutorial_s_times_have_a_serial_share_of_about_a_half() -> None:
    law = costs.fit_amdahl(RANKS, [30.43, 24.19, 19.81, 17.90])
    assert 0.5 < law.serial_share < 0.55
    assert np.max(np.abs(law.seconds(RANKS) / [30.43, 24.19, 19.81, 17.90] - 1)) < 0.03


def test_times_that_grow_with_the_ranks_are_all_serial(recwarn: pytest.WarningsRecorder) -> None:
    assert costs.fit_amdahl(RANKS, [2.0, 2.2, 2.4, 2.8]).serial_share == 1
    assert list(recwarn) == []


def test_speed_ups_are_not_taken_for_seconds_without_a_warning() -> None:
    with pytest.warns(UserWarning, match="begin at 1 and do not fall, as speed-ups; seconds are needed"):
        assert costs.fit_amdahl(RANKS, [1.0, 1.8, 3.2, 5.1]).serial_share == 1


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
def test_karp_and_flatt_s_share_is_the_law_s_for_every_number_of_ranks(share: float) -> None:
    law = costs.Amdahl(share, 1 - share)
    np.testing.assert_allclose(costs.serial_share(law.speedup(RANKS[1:]), RANKS[1:]), share, atol=1e-12)


def test_karp_and_flatt_s_share_grows_when_communication_does() -> None:
    seconds = 0.1 + 0.9 / RANKS + 0.02 * np.log2(RANKS)
    shares = costs.serial_share(seconds[0] / seconds[1:], RANKS[1:])
    assert np.all(np.diff(shares) > 0)


@pytest.mark.parametrize(
    ("ranks", "seconds"),
    [
        ([1], [2.0]),
        ([2, 2], [2.0, 2.1]),
        ([1, 2], [1.0]),
        ([1, 2], [1.0, 0.0]),
        ([1, 2], [1.0, np.nan]),
        ([0, 2], [1, 1]),
    ],
)
def test_what_cannot_be_fitted_is_refused(ranks: list, seconds: list) -> None:
    with pytest.raises(ValueError):
        costs.fit_amdahl(ranks, seconds)


@pytest.mark.parametrize(("speedup", "ranks"), [(1.0, 1), (0.0, 2), (-1.0, 2)])
def test_a_share_that_makes_no_sense_is_refused(speedup: float, ranks: int) -> None:
    with pytest.raises(ValueError):
        costs.serial_share(speedup, ranks)


# Bandwidths


@pytest.mark.parametrize(
    ("collective", "factor"),
    [
        ("all_reduce", 1.75),
        ("reduce_scatter", 0.875),
        ("all_gather", 0.875),
        ("all_to_all", 0.875),
        ("gather", 0.875),
        ("scatter", 0.875),
        ("broadcast", 1),
        ("reduce", 1),
    ],
)
def test_bus_bandwidth_as_nccl_tests_defines_it(collective: str, factor: float) -> None:
    assert costs.algorithm_bandwidth(4e9, 0.5) == 8e9
    assert costs.bus_bandwidth(collective, 8, 4e9, 0.5) == pytest.approx(8e9 * factor)


def test_a_ring_at_full_speed_has_the_bus_bandwidth_of_its_links() -> None:
    ranks = np.arange(2, 100)
    seconds = costs.all_reduce("ring", ranks, MEGABYTE).seconds(0.0, 1e-9)
    np.testing.assert_allclose(costs.bus_bandwidth("all_reduce", ranks, MEGABYTE, seconds), 1e9)
    assert np.all(np.diff(costs.algorithm_bandwidth(MEGABYTE, seconds)) < 0)


def test_bandwidths_refuse_what_cannot_be() -> None:
    with pytest.raises(ValueError, match="seconds is finite and above 0"):
        costs.algorithm_bandwidth(1, 0)
    with pytest.raises(ValueError, match="'allreduce'; there are all_reduce"):
        costs.bus_bandwidth("allreduce", 2, 1, 1)
