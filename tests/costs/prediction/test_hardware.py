"""Machines as networks of the virtual cluster, and assumptions about them."""

import pytest

from distlab.costs import HARDWARE, Assumptions


def test_hardware_gives_a_network_for_the_virtual_cluster() -> None:
    network = HARDWARE["bigbasin-ethernet50"].network()
    assert network.link(0, 7) == HARDWARE["bigbasin-ethernet50"].inside
    assert network.link(0, 8).seconds_per_byte == pytest.approx(8 * 8e-9 / 50)


@pytest.mark.parametrize(
    "wrong", [{"bandwidth_share": 0}, {"backward_share": 1.5}, {"variation": -1}, {"slowdown": float("nan")}]
)
def test_impossible_assumptions_are_refused(wrong: dict) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Assumptions(**wrong)
