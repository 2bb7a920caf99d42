"""Limits of a link really limit, in both directions; a cut cable is noticed, and restored."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from distlab.cluster import Cluster, network
from tests.distlab.cluster.cluster_bench import NEEDS_CLUSTER, until

pytestmark = [pytest.mark.slow, NEEDS_CLUSTER]
TRANSFER = Path(__file__).with_name("transfer.py")
# A bucket full of tokens passes at once, and acknowledgements come late.
MARGIN = 2
LIMITS = ["ssh", "node2", "PATH=$PATH:/usr/sbin:/sbin tc qdisc show dev eth0"]


def state(running: Cluster, node: str) -> str:
    return running.run(["sinfo", "--noheader", f"--nodes={node}", "--format=%T"]).output.strip()


def measured(running: Cluster) -> dict[str, float]:
    finished = running.run([sys.executable, str(TRANSFER)])
    assert finished.status == 0, finished.output
    # The next change of the link would lose what the node tells slurmctld about the end of the job.
    until(lambda: state(running, "node2") == "idle", "node2 is not idle")
    return json.loads(finished.output.splitlines()[-1])


def test_a_rate_is_read_as_tc_reads_it() -> None:
    assert [network.amount("rate", rate) for rate in ("100mbit", "1.5Gbit", "64 kbit")] == [100e6, 1.5e9, 64e3]


@pytest.fixture
def own(running: Cluster) -> Iterator[Cluster]:
    """The cluster, with its links as they are in the beginning."""
    yield running
    for node in running.nodes():
        running.link(node)
        running.restore(node)


def test_limits_hold_in_both_directions_and_go_away(own: Cluster) -> None:
    own.link("node2", rate="20mbit", latency="30ms")
    limited = measured(own)
    assert max(limited["sent"], limited["received"]) < 20e6 / 8 * MARGIN
    assert limited["round_trip"] > 0.055
    own.link("node2", rate="50mbit")
    assert "50Mbit" in own.run(LIMITS).output
    own.link("node2")
    assert own.links()["node2"].rate is None and own.links()["node2"].latency is None
    assert "qdisc noqueue" in own.run(LIMITS).output


def test_a_cut_cable_is_noticed_and_restored(own: Cluster) -> None:
    reach = ["ssh", "-o", "ConnectTimeout=2", "node3", "hostname"]
    own.cut("node3")
    assert own.run(reach).status == 255
    assert own.run(["ssh", "node2", "cat /sys/class/net/eth0/carrier"]).status == 0
    own.restore("node3")
    until(lambda: own.run(reach).output == "node3\n", "node3 is not reached again")
