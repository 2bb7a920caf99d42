"""`distlab measure` under the launchers; two hosts with slow links are measured, and three are predicted."""

import os
import sys
from pathlib import Path

import pytest

from course_tools.__main__ import main
from distlab import cluster, launch, programs
from distlab.costs.measured.measurement import read
from distlab.costs.measured.prediction import predict_measured
from distlab.models import mlp
from distlab.runtime import processes
from tests.distlab.cluster.cluster_bench import NEEDS_CLUSTER

DISTLAB = Path(sys.executable).with_name("distlab")
pytestmark = pytest.mark.usefixtures("one_job")

RECORDER = Path("notebooks/programs/15_clusters/record_measurements.py")


@pytest.mark.slow
def test_it_measures_and_what_it_measured_predicts(tmp_path: Path) -> None:
    file = tmp_path / "measured.json"
    options = ["--model", "mlp", "--output", file, "--batch", "4", "--repeats", "5", "--warm-up", "1", "--threads", "1"]
    launch.mpirun(DISTLAB, "measure", *options, echo=False, prepared=False)
    result = read(file)
    assert (result.communication, result.ranks_per_host, result.machines) == ("Horovod over MPI", (2,), 1)
    assert (result.batch, result.repeats, result.threads) == (4, 5, 1)
    assert result.gradient_bytes == tuple(4 * each.shape.num_elements() for each in mlp().trainable_variables)
    assert result.sizes[0] == 1024 and result.sizes[-1] >= sum(result.gradient_bytes) > result.sizes[-2]
    text = file.read_text()
    assert os.uname().nodename not in text and str(Path.home()) not in text and str(tmp_path) not in text
    assert main(["predict", "--measured", str(file), "--ranks", "1,2"]) == 0


@pytest.mark.slow
@NEEDS_CLUSTER
def test_two_hosts_that_are_measured_predict_three(
    tmp_path: Path, root: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On links so slow that the all-reduce of 5.5 MB takes half a second, and a step of a small batch milliseconds."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    mark, measured = processes.new_mark(), {}
    options = ["--model=wide_cnn", "--batch=4", "--repeats=5", "--warm-up=1", "--sizes", "262144", "1048576", "4194304"]
    with processes.guarded(mark), processes.marked(mark), cluster.up("measured") as slow_hosts:
        for node in slow_hosts.nodes():
            slow_hosts.link(node, rate="100mbit")
        for hosts in (2, 3):
            file = tmp_path / f"{hosts}.json"
            programs.module(root / RECORDER).measure(slow_hosts, hosts, file, options)
            assert "node" not in file.read_text() and str(root) not in file.read_text()
            measured[hosts] = read(file)
    two, three = measured.values()
    assert (two.ranks_per_host, three.ranks_per_host) == ((1, 1), (1, 1, 1))
    assert two.shares_cores and three.machines == 1
    [predicted] = predict_measured(two, [3]).step_seconds
    assert predicted > two.step_alone.median  # the all-reduce comes on top of the computing
