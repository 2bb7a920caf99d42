"""A rate is read as tc reads it."""

from distlab.cluster import network


def test_a_rate_is_read_as_tc_reads_it() -> None:
    assert [network.amount("rate", rate) for rate in ("100mbit", "1.5Gbit", "64 kbit")] == [100e6, 1.5e9, 64e3]
