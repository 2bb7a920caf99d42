"""Amdahl's law: fits of made-up times give what they were made of."""

import numpy as np
import pytest

from distlab import costs

RANKS = np.array([1, 2, 4, 8])


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


def test_times_that_grow_with_the_ranks_are_all_serial() -> None:
    assert costs.fit_amdahl(RANKS, [1.0, 1.1, 1.2, 1.4]).serial_share == 1


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
