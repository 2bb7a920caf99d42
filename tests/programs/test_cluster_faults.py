"""What a user of chapter 15's scripts sees of a fault: a job that ends with a clear line, and never one that hangs."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from distlab import launch
from tests.distlab.cluster.cluster_bench import NEEDS_CLUSTER
from tests.programs.job_bench import CHAPTER, Jobs, running_jobs

pytestmark = [pytest.mark.slow, NEEDS_CLUSTER]

NEEDS_HOROVOD = pytest.mark.skipif(launch.horovod_problem() is not None, reason=str(launch.horovod_problem()))
SECONDS_TO_END = 900.0
ENDLESS = ("--steps", "100000000", "--log-every", "5")


@pytest.fixture
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Jobs]:
    """A cluster for each fault: most leave it damaged."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    with running_jobs(tmp_path) as jobs:
        yield jobs


def begin(jobs: Jobs, script: str, program: str) -> str:
    """Submit a training that never ends, on node1 and node2, and wait until it trains.

    A second time if the first one crashes: on a busy machine Horovod over MPI may do so while it starts.
    """
    for _ in range(2):
        job = jobs.submit(script, CHAPTER / program, *ENDLESS, options=("--nodelist=node1,node2", "--no-requeue"))
        try:
            jobs.wait_for_line(job, "step 5 of")
        except AssertionError:
            if "Segmentation fault" not in jobs.output(job):
                raise
        else:
            return job
    pytest.fail(jobs.output(job))


def kill(jobs: Jobs, *command: str) -> None:
    killed = jobs.cluster.run([*command])
    assert killed.status == 0, killed.output


def node_fails(jobs: Jobs, job: str, node: str) -> None:
    """The job ends, and its output and Slurm name the node."""
    output = jobs.wait(job, "NODE_FAIL", seconds=SECONDS_TO_END)
    assert re.search(rf"CANCELLED AT .* DUE TO NODE FAILURE|Node failure on {node}", output), output
    state = jobs.cluster.run(["sinfo", "--noheader", "--nodes", node, "--format=%T"]).output
    assert state.startswith("down"), state


@pytest.mark.long
def test_a_node_that_dies_ends_the_job(jobs: Jobs) -> None:
    job = begin(jobs, "batch.sbatch", "train_multi_worker.py")
    kill(jobs, "pkill", "-KILL", "--full", " /run node2$")  # the first process of the node: with it all others end
    output = jobs.wait(job, "NODE_FAIL", "FAILED", seconds=SECONDS_TO_END)
    assert "node2" in output


@pytest.mark.long
@NEEDS_HOROVOD
def test_a_cut_link_ends_a_job_that_mpi_alone_would_let_hang(jobs: Jobs) -> None:
    job = begin(jobs, "horovod_pmix.sbatch", "train_horovod.py")
    jobs.cluster.cut("node2")
    node_fails(jobs, job, "node2")
    jobs.cluster.restore("node2")
    assert jobs.cluster.run(["scontrol", "update", "NodeName=node2", "State=RESUME"]).status == 0
    again = jobs.cluster.run(["srun", "--nodelist=node2", "uname", "--nodename"], SECONDS_TO_END)
    assert again.output.splitlines()[-1] == "node2"


@pytest.mark.long
def test_a_node_without_its_slurmd_is_given_up_and_jobs_run_again_unless_they_must_not(jobs: Jobs) -> None:
    Path("program.py").write_text(
        "import os, signal\nprint('it runs on', os.uname().nodename, flush=True)\nsignal.pause()\n"
    )
    job = jobs.submit("batch.sbatch", "program.py", options=("--nodelist=node1,node2", "--no-requeue"))
    again = jobs.submit("batch.sbatch", "program.py", options=("--nodes=1", "--exclude=node3"))
    for each in (job, again):
        jobs.wait_for_line(each, "it runs on node1")
    kill(jobs, "ssh", "node1", "pkill", "-KILL", "slurmd")
    node_fails(jobs, job, "node1")
    jobs.wait_for_line(again, "it runs on node2")
