"""A cluster starts and leaves nothing, whoever is killed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from distlab import cluster
from tests.distlab.cluster.cluster_bench import NEEDS_CLUSTER, Bench, network_of, until

THREE = ["node1", "node2", "node3"]

pytestmark = [pytest.mark.slow, NEEDS_CLUSTER]


def test_it_starts_and_leaves_nothing(bench: Bench) -> None:
    before = bench.traces()
    with cluster.up() as own:
        daemons = {name: bench.processes(name) for name in ("slurmctld", "slurmd", "munged")}
        assert [len(each) for each in daemons.values()] == [1, 3, 1]
        assert len(bench.networks()) == 4
        for process in [process for each in daemons.values() for process in each]:
            assert network_of(process.pid) != network_of()
        assert own.nodes() == THREE
        assert bench.traces() == before
    assert bench.processes() == []
    assert bench.traces() == before
    assert cluster.find() is None


@pytest.mark.parametrize("victim", ["slurmctld", "sh"])
def test_after_any_kill_down_leaves_nothing(victim: str, bench: Bench) -> None:
    before = bench.traces()
    own = cluster.up(nodes=2)
    for process in bench.processes(victim)[:1]:  # the first sh holds the cluster
        process.kill()
        process.wait(60)
    if victim == "sh":
        until(lambda: bench.processes() == [], "processes of the cluster are alive")
        with pytest.raises(cluster.ClusterError, match="does not run; start it with 'make cluster'"):
            own.run(["hostname"])
    own.down()
    assert bench.processes() == []
    assert bench.traces() == before


def test_a_start_that_is_interrupted_leaves_nothing(bench: Bench) -> None:
    before = bench.traces()
    command = [sys.executable, "-m", "course_tools", "cluster", "up"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until(lambda: cluster.find() or process.poll() is not None, "the start has begun")
    process.send_signal(signal.SIGINT)
    process.wait(300)
    assert bench.processes() == []
    assert bench.traces() == before


def test_a_daemon_that_does_not_start_is_named(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "slurmctld").write_text("#!/bin/sh\necho it cannot >&2\nexit 1\n")
    (tmp_path / "slurmctld").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(cluster.ClusterError, match=r"(?s)The cluster did not start: .*\n\+ [^\n]*slurmctld\nit cannot"):
        cluster.up()
    assert bench.processes() == []
