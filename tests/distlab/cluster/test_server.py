"""What runs on the login node and the nodes is not ended by a user's usual clean-up there, but from outside."""

import shutil
import signal

import pytest

from distlab import cluster
from distlab.cluster import Cluster
from distlab.cluster.server import NAME
from tests.distlab.cluster.cluster_bench import NEEDS_CLUSTER, Bench, lines_of_ranks, until

pytestmark = [
    pytest.mark.slow,
    NEEDS_CLUSTER,
    pytest.mark.skipif(not shutil.which("pkill"), reason="needs pkill, of Debian's package procps"),
]

# The brackets keep the shell, whose own command line has these words, alive.
CLEAN_UP = """
pkill python; pkill -KILL python; pkill sleep
for signal in TERM HUP INT; do pkill -$signal -f distlab.cluster.[s]erver; pkill -$signal -f relay.p[y]; done
kill -INT 1
"""


def test_a_clean_up_on_the_login_node_or_a_node_does_not_end_the_cluster(running: Cluster) -> None:
    running.link("node2", latency="1ms")
    assert running.run(["sh", "-c", CLEAN_UP]).status == 0
    assert running.run(["ssh", "node3", "pkill sleep"]).status == 0
    assert running.links()["node2"].limits.latency == 1e-3
    finished = running.run(["srun", "--nodes=3", "hostname"])
    assert lines_of_ranks(finished.output) == ["node1", "node2", "node3"]


def test_no_job_inherits_that_it_cannot_be_ended(running: Cluster) -> None:
    assert running.run(["srun", "sh", "-c", "kill -TERM $$; echo goes on"]).status == 128 + signal.SIGTERM


def test_a_signal_from_outside_ends_it(bench: Bench) -> None:
    before = set(bench.processes().get(NAME, []))
    cluster.up("outside", nodes=1)
    for process in set(bench.processes()[NAME]) - before:
        process.terminate()
    until(lambda: cluster.find("outside") is None, "it runs")
