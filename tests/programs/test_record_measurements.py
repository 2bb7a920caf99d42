"""The recorded measurements of hosts with slow links can be read, name nobody, and belong together."""

from pathlib import Path

import pytest

from distlab import costs

RATES = ("1gbit", "100mbit")


def recorded(root: Path, hosts: int, rate: str) -> costs.ClusterMeasurement:
    return costs.read_measurement(root / f"notebooks/programs/15_clusters/recorded/measured_{hosts}_hosts_{rate}.json")


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("hosts", [2, 3])
def test_they_say_what_was_measured(hosts: int, rate: str, root: Path) -> None:
    measurement = recorded(root, hosts, rate)
    assert measurement.ranks_per_host == (1,) * hosts and measurement.machines == 1
    assert {"python", "tensorflow", "horovod"} <= set(measurement.versions)
    assert measurement.communication == "Horovod over Gloo"
    assert "node" not in str(measurement)


def test_on_the_slow_network_the_prediction_for_three_hosts_holds(root: Path) -> None:
    two, three = (recorded(root, hosts, "100mbit") for hosts in (2, 3))
    [row] = costs.measured_residuals(costs.predict_measured(two, [3]), [three])
    assert abs(row["residual"]) < 0.15
    assert two.step.median < 0.85 * three.step.median  # to change nothing is no prediction


def test_the_links_decide_how_long_an_all_reduce_takes(root: Path) -> None:
    fast, slow = (recorded(root, 2, rate) for rate in RATES)
    assert fast.sizes == slow.sizes
    # No faster than the link, whose bucket lets 62,500 bytes pass at once, there and back.
    assert slow.all_reduces[-1].median > (slow.sizes[-1] - 125_000) * 8 / 100e6
    assert fast.all_reduces[-1].median < slow.all_reduces[-1].median
