"""The files of the cluster suit the version of Slurm, and whatever control groups the machine has."""

import os
import sys

import pytest

from distlab.cluster import configuration
from distlab.runtime import processes
from tests.distlab.cluster.cluster_bench import NEEDS_CLUSTER, Bench, lines_of_ranks


@pytest.mark.parametrize(
    ("version", "plugin"), [("slurm-wlm 22.05.8", "cgroup/v1"), ("slurm 24.05.2", "disabled"), ("", "cgroup/v1")]
)
def test_no_version_of_slurm_asks_for_control_groups(version: str, plugin: str) -> None:
    assert configuration.cgroup(version) == f"CgroupPlugin={plugin}\n"


@pytest.mark.slow
@NEEDS_CLUSTER
@pytest.mark.parametrize("kind", ["cgroup2", "tmpfs"])
def test_any_control_groups_will_do(kind: str, bench: Bench) -> None:
    """Of a machine with systemd, and of a container without any."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount other control groups")
    login = "print(own.run(['srun', 'hostname']).output)"
    program = f"from distlab import cluster\nwith cluster.up('groups', nodes=1) as own: {login}"
    mount = f'mount -t {kind} none /sys/fs/cgroup && exec "$@"'
    finished = processes.run(["unshare", "--mount", "sh", "-c", mount, "sh", sys.executable, "-c", program], 600)
    if "mount:" in finished.output:
        pytest.skip(finished.output)
    assert list(filter(None, lines_of_ranks(finished.output))) == ["node1"]
