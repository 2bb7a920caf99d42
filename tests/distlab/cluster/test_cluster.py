"""A cluster starts and leaves nothing, whoever is killed; Slurm, ssh and MPI work on it as on a real one."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from distlab import cluster
from distlab.cluster import Cluster
from tests.distlab.cluster.cluster_bench import NEEDS_CLUSTER, Bench, lines_of_ranks, network_of, until

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
    with pytest.raises(cluster.ClusterError, match=r"The cluster did not start: '.*slurmctld' failed: it cannot"):
        cluster.up()
    assert bench.processes() == []


def test_a_batch_job_outlives_who_submits_it_and_writes_to_the_shared_folder(running: Cluster, tmp_path: Path) -> None:
    script = tmp_path / "job.sh"
    script.write_text(
        f"#!/bin/bash\nset -e\nsrun --nodes=2 hostname\nwhile [ ! -e {tmp_path}/go ]; do sleep 0.05; done\n"
    )
    job = running.run(["sbatch", "--parsable", "--nodes=2", f"--output={tmp_path}/out.txt", str(script)]).output.strip()

    def is_in(state: str) -> bool:
        return f"JobState={state}" in running.run(["scontrol", "show", "job", job]).output

    until(lambda: is_in("RUNNING"), "the job does not run")
    (tmp_path / "go").touch()
    until(lambda: is_in("COMPLETED"), "the job does not end")
    assert lines_of_ranks((tmp_path / "out.txt").read_text()) == ["node1", "node2"]


def test_each_task_has_a_gpu_of_its_own_and_no_job_more_than_there_are(running: Cluster) -> None:
    ask = ["srun", "--ntasks-per-node=8", "printenv", "CUDA_VISIBLE_DEVICES"]
    assert lines_of_ranks(running.run([*ask[:2], "--gpus-per-task=1", *ask[2:]]).output) == [*"01234567"]
    assert running.run([*ask[:2], "--gpus-per-node=8", *ask[2:]]).output.split() == ["0,1,2,3,4,5,6,7"] * 8
    assert running.run(["srun", "--gpus-per-node=9", "true"]).status == 1


def test_ssh_reaches_a_node_and_leaves_nothing_at_home(running: Cluster) -> None:
    home = Path.home() / ".ssh"
    before = sorted(path.name for path in home.glob("*"))
    finished = running.run(["ssh", "node2", "hostname && ssh node3 hostname"])
    assert finished.output == "node2\nnode3\n"
    assert sorted(path.name for path in home.glob("*")) == before


ADD_RANKS = """
import socket
from mpi4py import MPI
print(MPI.COMM_WORLD.allreduce(MPI.COMM_WORLD.rank), socket.gethostname())
"""


@pytest.mark.parametrize(
    "starter",
    [
        "srun --nodes=3 --ntasks=3 --mpi=pmix",
        "mpirun -np 3 -H node1,node2,node3 --mca btl_tcp_if_include eth0 --mca oob_tcp_if_include eth0",
    ],
)
def test_the_ranks_of_mpi_are_started(starter: str, running: Cluster, tmp_path: Path) -> None:
    (tmp_path / "add_ranks.py").write_text(ADD_RANKS)
    finished = running.run([*starter.split(), sys.executable, str(tmp_path / "add_ranks.py")])
    if "can not load PMIx library" in finished.output:
        pytest.skip("srun --mpi=pmix needs the package libpmix-dev")
    assert lines_of_ranks(finished.output) == ["3 node1", "3 node2", "3 node3"]


def test_the_variables_of_a_step_give_tf_config(running: Cluster) -> None:
    program = "from distlab.cluster_spec import from_slurm; print(from_slurm())"
    finished = running.run(["srun", "--nodes=3", "--ntasks=5", "--label", "python", "-c", program])
    assert finished.status == 0, finished.output
    assert len(re.findall(r"node1:\d+", finished.output)) == 15  # three tasks on node1, in five texts
