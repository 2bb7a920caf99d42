"""The files of the cluster suit the version of Slurm, and whatever control groups the machine has."""

import pytest

from distlab.cluster import configuration


@pytest.mark.parametrize(
    ("version", "plugin"), [("slurm-wlm 22.05.8", "cgroup/v1"), ("slurm 24.05.2", "disabled"), ("", "cgroup/v1")]
)
def test_no_version_of_slurm_asks_for_control_groups(version: str, plugin: str) -> None:
    assert configuration.cgroup(version) == f"CgroupPlugin={plugin}\n"
