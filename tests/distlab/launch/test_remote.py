"""Jobs on several hosts, by ssh, mpirun and Slurm: what they give, and how they end when something is wrong.

The hosts are a cluster of namespaces: processes, networks and host names are those of different machines.
"""

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil
import pytest

from distlab import cluster, launch
from distlab.launch.host_process import SECONDS_OF_SILENCE
from distlab.runtime import processes
from tests.distlab.cluster.cluster_bench import NEEDS_CLUSTER, Bench, until
from tests.distlab.launch.cluster_jobs import DRIVER, ClusterJobs, came_of, wait_for
from tests.distlab.launch.launched_program import Launched

pytestmark = [pytest.mark.slow, NEEDS_CLUSTER]

# The name of a process under each way of starting, and what starts two of them on two nodes.
STARTERS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "ssh": ("worker", "tensorflow", {"hosts": "node1:1,node2:1"}),
    "mpirun": ("rank", "mpirun", {"hosts": "node1:1,node2:1"}),
    "srun": ("rank", "srun", {"ranks": 2, "nodes": 2}),
}
COMMAND_LINE = {
    "ssh": ["--hosts", "node1:1,node2:1"],
    "mpirun": ["--with", "mpirun", "--hosts", "node1:1,node2:1"],
    "srun": ["--with", "srun", "--nodes", "2"],
}
UP = "all=open,stubborn,child,say:up,wait"


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    place = Bench(tmp_path_factory.mktemp("cache"), processes.new_mark())
    with pytest.MonkeyPatch.context() as patch, processes.guarded(place.mark), processes.marked(place.mark):
        patch.setenv("XDG_CACHE_HOME", str(place.cache))
        yield place


@pytest.fixture(scope="module")
def running(bench: Bench) -> Iterator[cluster.Cluster]:
    with cluster.up("launch") as own:
        yield own


@pytest.fixture
def jobs(
    running: cluster.Cluster, bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ClusterJobs]:
    monkeypatch.chdir(tmp_path)
    own = ClusterJobs(running, bench, tmp_path)
    yield own
    for node in ("node1", "node2", "node3"):  # what a failed test has left is not the next one's
        own.kill(node, str(tmp_path))


@pytest.fixture(params=STARTERS)
def starter(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_output_statuses_and_result_are_as_on_one_machine(starter: str, jobs: ClusterJobs, launched: Launched) -> None:
    kind, name, settings = STARTERS[starter]
    acts = ["all=lines30,wide5000", "0=result"]
    outcome = jobs.run(name, launched.program, *acts, result=True, **settings)
    assert outcome["error"] is None, outcome["message"]
    run = outcome["run"]
    for number in range(2):
        lines = [*(f"line {line} of worker {number}" for line in range(30)), "w" * 5000]
        assert run["output"][f"{kind} {number}"] == "\n".join(lines)
        assert run["exit_codes"][f"{kind} {number}"] == 0
    assert run["hosts"] == {f"{kind} 0": "node1", f"{kind} 1": "node2"}
    assert run["result"] == {"loss": 0.5, "from": "0"}
    assert jobs.left() == []


def test_a_rank_gets_the_variables_that_it_needs_and_no_others(
    starter: str, jobs: ClusterJobs, launched: Launched, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, name, settings = STARTERS[starter]
    for variable in ("TF_TRAVELS", "STAYS_HERE"):
        monkeypatch.setenv(variable, "yes")
    acts = "1=show:TF_TRAVELS,show:STAYS_HERE,show:ONE_MORE,show:DISTLAB_RUN"
    outcome = jobs.run(name, launched.program, acts, environment={"ONE_MORE": "1"}, **settings)
    lines = outcome["run"]["output"][f"{kind} 1"].splitlines()
    assert lines[:3] == ["TF_TRAVELS is yes", "STAYS_HERE is None", "ONE_MORE is 1"]
    # A mark of this machine would let it end what only the node itself may end here.
    assert not any(mark in lines[3] for mark in os.environ[processes.MARK].split())


@pytest.mark.long
def test_a_rank_that_fails_ends_the_job_and_is_named_with_its_node(
    starter: str, jobs: ClusterJobs, launched: Launched
) -> None:
    kind, name, settings = STARTERS[starter]
    acts = ["0=open,stubborn,child,wait", "1=open,say:no data,exit3"]
    outcome = jobs.run(name, launched.program, *acts, **settings)
    assert (outcome["error"], outcome["place"]) == ("WorkerFailed", [None, f"{kind} 1", 3])
    assert outcome["message"].startswith(f"{kind} 1 on node2 failed, exit code 3; the job was ended.")
    assert outcome["message"].endswith("no data")
    assert outcome["run"]["exit_codes"][f"{kind} 1"] == 3
    assert jobs.left() == []


@pytest.mark.parametrize(
    ("starter", "number"),
    [
        ("ssh", signal.SIGINT),
        ("ssh", signal.SIGKILL),
        ("mpirun", signal.SIGTERM),
        ("mpirun", signal.SIGKILL),
        ("srun", signal.SIGINT),
        ("srun", signal.SIGKILL),
    ],
)
def test_a_launcher_that_is_ended_leaves_nothing_on_any_node(
    starter: str, number: signal.Signals, jobs: ClusterJobs, launched: Launched
) -> None:
    """Neither ranks that ignore SIGTERM nor their children in sessions of their own."""
    command = [
        sys.executable,
        "-m",
        "course_tools.__main__",
        "launch",
        *COMMAND_LINE[starter],
        str(launched.program),
        "--",
        UP,
    ]
    with jobs.entered(command) as job:
        wait_for(job, "up")
        [launcher] = psutil.Process(job.pid).children()
        launcher.send_signal(number)
        output = job.communicate(timeout=300)[0]
    if number != signal.SIGKILL:
        assert "Interrupted; every process of the job is ended." in output
        assert jobs.left() == []
    jobs.until_nothing_is_left()
    until(lambda: not squeue(jobs), "Slurm has a job")


def squeue(jobs: ClusterJobs) -> str:
    return jobs.running.run(["squeue", "--noheader"]).output


@pytest.mark.long
def test_a_node_that_is_cut_off_or_dies_is_named_and_nothing_stays(jobs: ClusterJobs, launched: Launched) -> None:
    """One node's link is cut; of another all daemons, and all processes of the job, are killed at once."""
    settings = {f"{starter}, cut off": STARTERS[starter] for starter in STARTERS}
    settings["ssh, dead"] = "worker", "tensorflow", {"hosts": "node1:1,node3:1"}
    settings["srun, dead"] = "rank", "srun", {"ranks": 2, "options": ["--nodelist=node1,node3"]}
    with ExitStack() as stack:
        started = {}
        for case, (_, name, places) in settings.items():
            started[case] = stack.enter_context(jobs.started(name, launched.program, UP, **places))
        for job in started.values():
            wait_for(job, "up")
        jobs.running.cut("node2")
        stack.callback(restore, jobs, "node2")
        jobs.kill("node3", "sshd", "slurmd", "slurmstepd", "host_process.py", "rank_process.py", str(launched.folder))
        outcomes = {case: came_of(job) for case, job in started.items()}
        jobs.until_nothing_is_left()
        unreachable = [jobs.run("tensorflow", launched.program, UP, hosts=node) for node in ("node2", "node3")]
    for case, outcome in outcomes.items():
        kind, node = settings[case][0], "node3" if "dead" in case else "node2"
        assert (outcome["error"], outcome["place"][0]) == ("HostLost", node), (case, outcome)
        assert outcome["message"].startswith(f"{node} (with {kind} 1) has "), case
        assert case == "ssh, dead" or f"has not answered for {SECONDS_OF_SILENCE:g} s: " in outcome["message"], case
        assert len(outcome["message"].splitlines()) == 1
    for node, outcome in zip(("node2", "node3"), unreachable, strict=True):
        sentence = f"{node} cannot be reached by ssh (ssh: connect to host {node} port 22: "
        assert outcome["message"].startswith(sentence), outcome["message"]


def restore(jobs: ClusterJobs, node: str) -> None:
    jobs.running.restore(node)
    jobs.running.run(["scontrol", "update", f"NodeName={node}", "State=RESUME"])
    until(lambda: "down" not in jobs.running.run(["sinfo", "--noheader", f"--nodes={node}"]).output, f"{node} is down")


def test_when_the_launchers_process_on_a_node_is_killed_its_ranks_end(jobs: ClusterJobs, launched: Launched) -> None:
    with jobs.started("tensorflow", launched.program, UP, hosts="node1:1,node2:1") as job:
        wait_for(job, "up")
        jobs.kill("node2", "host_process.py")
        outcome = came_of(job)
    assert (outcome["error"], outcome["place"][0]) == ("HostLost", "node2"), outcome
    jobs.until_nothing_is_left("node1")


@pytest.mark.parametrize(
    ("name", "settings", "sentence"),
    [
        (
            "tensorflow",
            {"hosts": "node1:1,node9:1"},
            "node9 cannot be reached by ssh (ssh: Could not resolve hostname node9: ",
        ),
        (
            "tensorflow",
            {"hosts": "node1:2,node2:1", "workers": 4},
            "processes=4 is too many for node1:2,node2:1, which is 3; name more hosts, or more of each.",
        ),
        (
            "srun",
            {"ranks": 99},
            "srun could not start the ranks: Unable to allocate resources: More processors requested than permitted.",
        ),
        (
            "srun",
            {"options": ["--nodelist=node9"]},
            "srun could not start the ranks: Unable to allocate resources: Invalid node name specified.",
        ),
        ("srun", {"ranks": 2, "nodes": 3}, "ranks=2 on nodes=3 makes no sense"),
    ],
)
def test_hosts_that_cannot_be_used_are_refused_in_a_sentence(
    name: str, settings: dict[str, Any], sentence: str, jobs: ClusterJobs, launched: Launched
) -> None:
    outcome = jobs.run(name, launched.program, UP, **settings)
    assert outcome["message"].startswith(sentence)
    assert len(outcome["message"].splitlines()) == 1
    assert jobs.left() == []


@pytest.mark.long
def test_a_partition_that_is_down_is_named_within_the_deadline(jobs: ClusterJobs, launched: Launched) -> None:
    update = ["scontrol", "update", "PartitionName=lab"]
    jobs.running.run([*update, "State=DOWN"])
    try:
        outcome = jobs.run("srun", launched.program, UP, start_seconds=20)
    finally:
        jobs.running.run([*update, "State=UP"])
    assert outcome["error"] == "WorkerMissing"
    assert outcome["message"].startswith("Within 20 s these ranks did not connect: rank 0 (never started on any node)")
    assert "wait: PartitionDown (see 'squeue' and 'sinfo')." in outcome["message"]
    until(lambda: not squeue(jobs), "Slurm has the job that was given up")


@pytest.mark.long
def test_a_rank_that_does_not_connect_is_named_with_its_node(jobs: ClusterJobs, launched: Launched) -> None:
    outcome = jobs.run("srun", launched.program, "0=open,wait", "1=wait", nodes=2, start_seconds=30)
    assert (outcome["error"], outcome["run"]["hosts"]["rank 1"]) == ("WorkerMissing", "node2")
    assert " on node2 has no connection); waiting for it: rank 0. " in outcome["message"]
    assert jobs.left() == []


def test_a_folder_that_a_node_does_not_see_is_named(jobs: ClusterJobs, launched: Launched) -> None:
    request = json.dumps(["tensorflow", [str(launched.program)], {"hosts": "node1:1", "echo": False}])
    own_folder = 'mkdir /dev/shm/mine && cd /dev/shm/mine && exec "$@"'  # each node has its own /dev/shm
    with jobs.entered(["sh", "-c", own_folder, "sh", sys.executable, "-c", DRIVER, request]) as job:
        outcome = came_of(job)
    assert outcome["message"] == (
        "node1 does not have the working folder /dev/shm/mine; it must be where all hosts see it."
    )


def test_without_slurm_a_sentence_says_so(launched: Launched, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(launch.LaunchError, match="There is no srun on this machine"):
        launch.srun(launched.program)
