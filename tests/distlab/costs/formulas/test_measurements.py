"""Fits of made-up times give back what they were made of; bandwidths are those of nccl-tests."""

import numpy as np
import pytest

from distlab import costs
from distlab.costs import Cost, fit

RANKS = np.array([1, 2, 4, 8])
SIZES = np.logspace(2, 8, 13)
ALPHA, BETA = 7e-6, 3e-10


def ring_of_four(sizes: np.ndarray) -> Cost:
    return costs.all_reduce("ring", 4, sizes)


def test_known_values_come_back_and_predict_another_collective() -> None:
    fitted = fit(SIZES, ALPHA + BETA * SIZES)
    assert (fitted.latency, fitted.seconds_per_byte) == pytest.approx((ALPHA, BETA), rel=1e-9)
    assert fitted.bandwidth == pytest.approx(1 / BETA)
    np.testing.assert_allclose(fitted.predicted, fitted.measured, rtol=1e-12)
    for cost in (ring_of_four, ring_of_four(SIZES)):
        fitted = fit(SIZES, ring_of_four(SIZES).seconds(ALPHA, BETA), cost)
        assert (fitted.latency, fitted.seconds_per_byte) == pytest.approx((ALPHA, BETA), rel=1e-9)
    another = costs.all_reduce("halving_doubling", 16, 1e6)
    assert fitted.seconds(another) == pytest.approx(another.seconds(ALPHA, BETA))


def test_an_overhead_needs_and_gets_several_numbers_of_ranks() -> None:
    sizes = np.tile(SIZES, 2)
    cost = costs.all_reduce("ring", np.repeat([2, 4], len(SIZES)), sizes)
    fitted = fit(sizes, 1e-3 + cost.seconds(ALPHA, BETA), cost, with_overhead=True)
    assert (fitted.overhead, fitted.latency, fitted.seconds_per_byte) == pytest.approx((1e-3, ALPHA, BETA))
    assert fitted.seconds(costs.all_reduce("ring", 8, 1e6)) == pytest.approx(1e-3 + 14 * (ALPHA + 1e6 / 8 * BETA))
    with pytest.raises(ValueError, match=r"cannot tell α, β and the overhead apart.*other collectives"):
        fit(SIZES, ring_of_four(SIZES).seconds(ALPHA, BETA), ring_of_four, with_overhead=True)


@pytest.mark.parametrize(("serial", "parallel"), [(10.0, 90.0), (0.0, 5.0)])
def test_times_made_by_amdahl_s_law_give_back_its_parts(serial: float, parallel: float) -> None:
    law = costs.fit_amdahl(RANKS, serial + parallel / RANKS)
    assert law.serial_seconds == pytest.approx(serial, abs=1e-9)
    assert law.parallel_seconds == pytest.approx(parallel, abs=1e-9)
    np.testing.assert_allclose(law.seconds(RANKS), serial + parallel / RANKS)
    # Karp and Flatt's share is the law's for every number of ranks.
    np.testing.assert_allclose(costs.serial_share(law.speedup(RANKS[1:]), RANKS[1:]), law.serial_share, atol=1e-12)


def test_bus_bandwidth_as_nccl_tests_defines_it() -> None:
    factors = {"all_reduce": 1.75, "broadcast": 1, "reduce": 1}
    for collective in costs.BUS_FACTOR:
        bandwidth = costs.bus_bandwidth(collective, 8, 4e9, 0.5)
        assert bandwidth == pytest.approx(8e9 * factors.get(collective, 0.875))
    ranks = np.arange(2, 100)
    seconds = costs.all_reduce("ring", ranks, 1e6).seconds(0.0, 1e-9)
    np.testing.assert_allclose(costs.bus_bandwidth("all_reduce", ranks, 1e6, seconds), 1e9)  # that of the links
    assert np.all(np.diff(costs.algorithm_bandwidth(1e6, seconds)) < 0)
