"""The files of the cluster suit the version of Slurm; a rate is read as tc reads it."""

import pytest

from distlab.cluster import configuration, network


@pytest.mark.parametrize(
    ("version", "plugin"), [("slurm-wlm 22.05.8", "cgroup/v1"), ("slurm 24.05.2", "disabled"), ("", "cgroup/v1")]
)
def test_no_version_of_slurm_asks_for_control_groups(version: str, plugin: str) -> None:
    assert configuration.cgroup(version) == f"CgroupPlugin={plugin}\n"


def test_a_rate_is_read_as_tc_reads_it() -> None:
    assert [network.amount("rate", rate) for rate in ("100mbit", "1.5Gbit", "64 kbit")] == [100e6, 1.5e9, 64e3]
