"""TensorFlow, Horovod and torchrun on two nodes of a cluster, started from its login node."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from distlab import cluster, launch
from distlab.runtime import processes
from tests.distlab.cluster.cluster_bench import NEEDS_CLUSTER, Bench
from tests.distlab.launch.cluster_jobs import ClusterJobs
from tests.distlab.launch.launched_program import Launched

pytestmark = [pytest.mark.slow, NEEDS_CLUSTER]

MIRRORED = """
import json, os, sys
import distlab
import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    variable = tf.Variable(1.0)

@tf.function
def total_of_ranks():
    return strategy.run(lambda: tf.distribute.get_replica_context().all_reduce("sum", variable + 1.0))

total = float(strategy.experimental_local_results(total_of_ranks())[0])
if json.loads(os.environ["TF_CONFIG"])["task"]["index"] == 0:
    with open(sys.argv[-1], "w") as file:
        json.dump(total, file)
print(os.uname().nodename, strategy.num_replicas_in_sync)
"""
HOROVOD = """
import os
import horovod.tensorflow as hvd
import tensorflow as tf

hvd.init()
total = hvd.allreduce(tf.constant([hvd.rank() + 1.0]), op=hvd.Sum)
print(os.uname().nodename, hvd.rank(), hvd.size(), float(total[0]), hvd.cross_size())
"""
# Starts ranks as torchrun does, so far as the launcher can tell: that needs PyTorch.
TORCHRUN = """\
#!{python}
import os, subprocess, sys
value = dict(zip(sys.argv, sys.argv[1:]))
count, node = int(value["--nproc-per-node"]), int(value["--node-rank"])
command = sys.argv[sys.argv.index("--no-python") + 1 :]
for local in range(count):
    address = value["--master-addr"] + ":" + value["--nnodes"]
    rank = {{"RANK": str(2 * node + local), "ADDRESS": address}}
    if status := subprocess.run(command, env=os.environ | rank).returncode:
        sys.exit(status)
"""


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    place = Bench(tmp_path_factory.mktemp("cache"), processes.new_mark())
    with pytest.MonkeyPatch.context() as patch, processes.guarded(place.mark), processes.marked(place.mark):
        patch.setenv("XDG_CACHE_HOME", str(place.cache))
        yield place


@pytest.fixture(scope="module")
def running(bench: Bench) -> Iterator[cluster.Cluster]:
    with cluster.up("frameworks", nodes=2) as own:
        yield own


@pytest.fixture
def jobs(running: cluster.Cluster, bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ClusterJobs:
    monkeypatch.chdir(tmp_path)
    return ClusterJobs(running, bench, tmp_path)


def write(folder: Path, text: str) -> Path:
    program = folder / "program.py"
    program.write_text(text)
    return program


@pytest.mark.long
def test_mirrored_workers_on_two_nodes_add_up(jobs: ClusterJobs, tmp_path: Path) -> None:
    limits = {"seconds": 500, "start_seconds": 400}
    outcome = jobs.run("tensorflow", write(tmp_path, MIRRORED), hosts="node1,node2", result=True, **limits)
    assert outcome["error"] is None, outcome["message"]
    assert outcome["run"]["output"] == {"worker 0": "node1 2", "worker 1": "node2 2"}
    assert outcome["run"]["result"] == 4.0
    assert jobs.left() == []


@pytest.mark.long
def test_horovodrun_on_two_nodes_adds_up(jobs: ClusterJobs, tmp_path: Path) -> None:
    launch.horovod_problem() and pytest.skip("Horovod is not installed here")
    outcome = jobs.run("horovodrun", write(tmp_path, HOROVOD), hosts="node1,node2", seconds=500, start_seconds=400)
    assert outcome["error"] is None, outcome["message"]
    output = outcome["run"]["output"]
    assert [output[f"rank {rank}"] for rank in range(2)] == ["node1 0 2 3.0 2", "node2 1 2 3.0 2"]
    assert jobs.left() == []


def test_torchrun_is_started_on_each_node(jobs: ClusterJobs, launched: Launched) -> None:
    torchrun = launched.folder / "bin" / "torchrun"
    torchrun.parent.mkdir()
    torchrun.write_text(TORCHRUN.format(python=sys.executable))
    torchrun.chmod(0o755)
    (torchrun.parent / "python").symlink_to(sys.executable)
    acts = ["all=show:ADDRESS", "2=exit4"]
    settings = {"hosts": "node1:2,node2:1", "python": str(torchrun.parent / "python")}
    outcome = jobs.run("torchrun", launched.program, *acts, **settings)
    assert (outcome["error"], outcome["place"]) == ("WorkerFailed", [None, "rank 2", 4])
    assert outcome["message"].startswith("rank 2 on node2 failed, exit code 4; the job was ended.")
    assert outcome["run"]["output"]["rank 1"] == "ADDRESS is node1:2"
    assert outcome["run"]["hosts"] == {"rank 0": "node1", "rank 1": "node1", "rank 2": "node2"}
    assert jobs.left() == []
