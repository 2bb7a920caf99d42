"""LinkLimits of a link really limit, in both directions; a cut cable is noticed, and restored."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from distlab.cluster import Cluster
from distlab.runtime.lookups import NoSuchName
from tests.distlab.cluster.cluster_bench import NEEDS_CLUSTER, until

pytestmark = [pytest.mark.slow, NEEDS_CLUSTER]
TRANSFER = Path(__file__).with_name("transfer.py")
# A bucket full of tokens passes at once, and acknowledgements come late.
MARGIN = 2
MEGABIT = 1e6 / 8


def state(running: Cluster, node: str) -> str:
    return running.run(["sinfo", "--noheader", f"--nodes={node}", "--format=%T"]).output.strip()


def measured(running: Cluster) -> dict[str, float]:
    finished = running.run([sys.executable, str(TRANSFER)])
    assert finished.status == 0, finished.output
    # The next change of the link would lose what the node tells slurmctld about the end of the job.
    until(lambda: state(running, "node2") == "idle", "node2 is not idle")
    return json.loads(finished.output.splitlines()[-1])


@pytest.fixture
def own(running: Cluster) -> Iterator[Cluster]:
    """The cluster, with its links as they are in the beginning."""
    yield running
    for node in running.nodes():
        running.link(node)
        running.restore(node)


def test_a_rate_holds_in_both_directions_and_goes_away(own: Cluster) -> None:
    own.link("node2", rate="20mbit")
    limited = measured(own)
    assert limited["sent"] < 20 * MEGABIT * MARGIN
    assert limited["received"] < 20 * MEGABIT * MARGIN
    own.link("node2")
    assert own.links()["node2"].limits.rate is None


def test_latency_is_added_in_each_direction_and_goes_away(own: Cluster) -> None:
    own.link("node2", latency="30ms")
    assert measured(own)["round_trip"] > 0.055
    own.link("node2", rate="50mbit", latency="20ms")
    both = measured(own)
    assert both["round_trip"] > 0.035
    own.link("node2")
    assert measured(own)["round_trip"] < 0.04


def test_the_state_of_the_links_is_known(own: Cluster) -> None:
    own.link("node1", rate="1gbit", latency="500us")
    own.cut("node3")
    links = own.links()
    assert (links["node1"].limits.rate, links["node1"].limits.latency) == (1e9, 0.0005)
    assert [link.is_up for link in links.values()] == [True, True, False]


def test_a_node_that_does_not_exist_is_named(own: Cluster) -> None:
    with pytest.raises(NoSuchName, match="no node 'node4'; there are node1, node2, node3"):
        own.link("node4", rate="1mbit")


def test_a_cut_cable_is_noticed_and_restored(own: Cluster) -> None:
    reach = ["ssh", "-o", "ConnectTimeout=2", "node3", "hostname"]
    own.cut("node3")
    assert own.run(reach).status == 255
    assert own.run(["ssh", "node2", "cat /sys/class/net/eth0/carrier"]).status == 0
    own.restore("node3")
    until(lambda: own.run(reach).output == "node3\n", "node3 is not reached again")


def test_a_cut_cable_with_latency_is_restored(own: Cluster) -> None:
    own.link("node3", latency="1ms")
    own.cut("node3")
    own.restore("node3")
    until(lambda: own.run(["ssh", "-o", "ConnectTimeout=2", "node3", "hostname"]).output == "node3\n", "unreachable")


def test_other_links_stay_as_they_are(own: Cluster) -> None:
    own.link("node1", rate="1mbit", latency="50ms")
    assert measured(own)["round_trip"] < 0.05


def test_the_relay_ends_when_its_interfaces_are_missing() -> None:
    relay = Path(sys.modules["distlab.cluster"].__file__ or "").with_name("relay.py")
    finished = subprocess.run(
        [sys.executable, "-IS", relay, "0.001", "no-such-a", "no-such-b"], capture_output=True, check=False
    )
    assert finished.returncode != 0


def test_slurm_gives_a_node_behind_a_cut_cable_up(own: Cluster) -> None:
    own.cut("node3")
    until(lambda: state(own, "node3").startswith("down"), "slurmctld has not noticed")
