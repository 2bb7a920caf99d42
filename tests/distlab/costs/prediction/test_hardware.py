"""What TCP costs a machine."""

from dataclasses import replace

import pytest

from distlab.costs import HARDWARE, Assumptions
from distlab.simulate import Link


def test_over_tcp_a_byte_takes_its_time_on_the_wire_and_in_a_processor() -> None:
    """Of 100 Gbit/s little more than a quarter is left; Horovod reached about 32 there (arXiv:2006.10103)."""
    fast = replace(HARDWARE["horovod-tcp40"], between=Link(0, 8e-9 / 100))
    inside, between = fast.links_under(Assumptions())
    assert 8e-9 / between.seconds_per_byte == pytest.approx(1 / (1 / 82 + 1 / 42))
    assert 8e-9 / between.seconds_per_byte == pytest.approx(32, rel=0.15)
    assert 1e-9 / inside.seconds_per_byte == pytest.approx(0.82 * 15.75)
    _, rdma = replace(fast, uses_tcp=False).links_under(Assumptions())
    assert 8e-9 / rdma.seconds_per_byte == pytest.approx(82)
