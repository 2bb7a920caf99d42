"""A cluster for each file of tests, in a cache folder of its own."""

from collections.abc import Iterator

import pytest

from distlab import cluster
from distlab.runtime import processes
from tests.distlab.cluster.cluster_bench import Bench


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """Clusters that the tests of this file start; ended at the latest after the file."""
    place = Bench(tmp_path_factory.mktemp("cache"), processes.new_mark())
    with pytest.MonkeyPatch.context() as patch, processes.guarded(place.mark), processes.marked(place.mark):
        patch.setenv("XDG_CACHE_HOME", str(place.cache))
        yield place


@pytest.fixture(scope="module")
def running(bench: Bench) -> Iterator[cluster.Cluster]:
    """A cluster of three nodes, for all tests of this file."""
    with cluster.up() as own:
        yield own
