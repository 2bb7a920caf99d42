"""Two hosts with slow links are measured, the step of three is predicted, and three are measured."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from distlab import cluster, programs
from distlab.cluster import Cluster
from distlab.costs.measured.measurement import ClusterMeasurement, read
from distlab.costs.measured.prediction import predict_measured
from distlab.runtime import processes
from tests.distlab.cluster.cluster_bench import NEEDS_CLUSTER

pytestmark = [pytest.mark.slow, NEEDS_CLUSTER, pytest.mark.usefixtures("one_job")]
RECORDER = Path("notebooks/programs/15_clusters/record_measurements.py")
# The gradients of the wide CNN are 5.5 MB: on such a link their all-reduce takes almost half a second, and the step of
# a small batch some milliseconds. Small all-reduces are left out: their times are mostly a busy machine's noise.
RATE, MODEL = "100mbit", ["--model=wide_cnn", "--batch=4"]
SHORT = ["--repeats=5", "--warm-up=1", "--sizes", "262144", "1048576", "4194304"]


@pytest.fixture(scope="module")
def slow_hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three nodes with slow links, in a cache folder of their own."""
    mark = processes.new_mark()
    with pytest.MonkeyPatch.context() as patch, processes.guarded(mark), processes.marked(mark):
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        with cluster.up("measured") as own:
            for node in own.nodes():
                own.link(node, rate=RATE)
            yield own


def measured(slow_hosts: Cluster, hosts: int, folder: Path, root: Path) -> ClusterMeasurement:
    """One rank on each host, as for the recorded measurements."""
    file = folder / f"{hosts}.json"
    programs.module(root / RECORDER).measure(slow_hosts, hosts, file, [*MODEL, *SHORT])
    assert "node" not in file.read_text() and str(root) not in file.read_text()
    return read(file)


def test_two_hosts_that_are_measured_predict_three(slow_hosts: Cluster, tmp_path: Path, root: Path) -> None:
    """How near it comes is for an idle machine: tests/programs/test_record_measurements.py."""
    two, three = (measured(slow_hosts, hosts, tmp_path, root) for hosts in (2, 3))
    assert (two.ranks_per_host, three.ranks_per_host) == ((1, 1), (1, 1, 1))
    assert two.shares_cores and three.machines == 1
    [predicted] = predict_measured(two, [3]).step_seconds
    assert predicted > two.step_alone.median  # the all-reduce comes on top of the computing
