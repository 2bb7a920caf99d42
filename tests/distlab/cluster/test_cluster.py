"""A cluster starts, runs commands, and leaves nothing, whoever is killed."""

import signal
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from distlab import cluster
from distlab.runtime import processes
from tests.distlab.cluster.cluster_bench import (
    NEEDS_CLUSTER,
    Bench,
    command_line,
    lines_of_ranks,
    own_namespaces,
    until,
)

DISTLAB = [sys.executable, "-m", "course_tools", "cluster"]
THREE = ["node1", "node2", "node3"]

pytestmark = [pytest.mark.slow, NEEDS_CLUSTER]


def test_it_starts_and_leaves_nothing(bench: Bench) -> None:
    before = bench.traces()
    with cluster.up() as own:
        names = bench.processes()
        assert [len(names[name]) for name in ("slurmctld", "slurmd", "munged")] == [1, 3, 1]
        namespaces = bench.namespaces()
        assert sum(name.startswith("net:") for name in namespaces) == 4
        assert own.nodes() == THREE
        assert bench.traces() | {"files": 0} == before | {"files": 0}
    assert bench.processes() == {}
    assert bench.traces() == before
    assert cluster.find() is None


def test_no_process_of_it_is_in_the_network_of_this_machine(bench: Bench) -> None:
    with cluster.up():
        here = {name for name in own_namespaces() if name.startswith("net:")}
        for process in bench.processes()["sshd"] + bench.processes()["slurmd"] + bench.processes()["slurmctld"]:
            assert not here & own_namespaces(process.pid)


@pytest.mark.parametrize(
    "victim", ["slurmctld", "slurmd", "munged", "sshd", "unshare", "sleep", "cluster-holder", "holder"]
)
def test_after_any_kill_down_leaves_nothing(victim: str, bench: Bench) -> None:
    before = bench.traces()
    own = cluster.up()
    for process in _victims(victim, bench):
        process.kill()
        process.wait(60)
    own.down()
    assert bench.processes() == {}
    assert bench.traces() == before


def _victims(name: str, bench: Bench) -> list[psutil.Process]:
    if name == "holder":
        holders = [process for process in bench.processes()["sh"] if "/holder" in " ".join(command_line(process))]
        return holders[:1]
    by_name = bench.processes()
    return next(found for process_name, found in by_name.items() if process_name.startswith(name))[:1]


def test_when_the_holder_is_killed_everything_ends_at_once(bench: Bench) -> None:
    own = cluster.up()
    _victims("holder", bench)[0].kill()
    until(lambda: bench.processes() == {}, "processes of the cluster are alive")
    assert cluster.find() is None
    with pytest.raises(cluster.ClusterError, match="does not run; start it with 'make cluster'"):
        own.run(["hostname"])
    with cluster.up() as again:  # over what the other has left
        assert again.run(["hostname"]).output == "login\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_start_that_is_interrupted_leaves_nothing(number: signal.Signals, bench: Bench) -> None:
    before = bench.traces()
    process = subprocess.Popen([*DISTLAB, "up"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until(lambda: cluster.find() or process.poll() is not None, "the start has begun")
    process.send_signal(number)
    process.wait(300)
    if number == signal.SIGKILL:  # nobody is left to tidy up
        assert processes.run([*DISTLAB, "down"], 300).status == 0
    assert bench.processes() == {}
    assert bench.traces() == before


def test_a_second_start_says_that_it_runs_already(bench: Bench) -> None:
    with cluster.up(nodes=1):
        with pytest.raises(cluster.ClusterError, match="'default' runs already; end it with 'distlab cluster down'"):
            cluster.up()
        again = processes.run([*DISTLAB, "up"], 300)
        assert again.status == 0
        assert "runs already" in again.output


def test_two_starts_at_the_same_time_make_one_cluster(bench: Bench) -> None:
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    pair = [subprocess.Popen([*DISTLAB, "up", "--nodes", "1"], **options) for _ in range(2)]
    outputs = sorted(process.communicate(timeout=600)[0] for process in pair)
    assert len(bench.processes()["slurmctld"]) == 1, outputs
    assert "runs already" in outputs[0] and "ready after" in outputs[1], outputs
    assert processes.run([*DISTLAB, "down"], 300).status == 0


def test_two_clusters_side_by_side_know_nothing_of_each_other(bench: Bench) -> None:
    with cluster.up("first", nodes=1) as first, cluster.up("second", nodes=2) as second:
        assert first.nodes() == THREE[:1] and second.nodes() == THREE[:2]
        second.cut("node1")
        assert lines_of_ranks(first.run(["srun", "hostname"]).output) == ["node1"]
        first.down()
        assert lines_of_ranks(second.run(["srun", "--nodelist=node2", "hostname"]).output) == ["node2"]


def test_a_port_that_is_taken_on_this_machine_does_not_matter(bench: Bench) -> None:
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind(("127.0.0.1", 6817))  # slurmctld's
            taken.listen()
        except OSError:
            pass  # then somebody else has it, which is as good
        with cluster.up(nodes=1) as own:
            assert lines_of_ranks(own.run(["srun", "hostname"]).output) == ["node1"]


@pytest.mark.parametrize("nodes", [0, 10])
def test_the_number_of_nodes_has_limits(nodes: int) -> None:
    with pytest.raises(cluster.ClusterError, match="1 to 9 nodes"):
        cluster.up(nodes=nodes)


def test_commands_end_with_who_runs_them(bench: Bench) -> None:
    with cluster.up(nodes=1) as own:
        process = subprocess.Popen(own.entering(["sleep", "987654"]))
        until(lambda: _running("987654", bench), "the command runs")
        process.kill()
        process.wait()
        until(lambda: not _running("987654", bench), "the command runs on")


def _running(word: str, bench: Bench) -> bool:
    return any(command_line(process) == ["sleep", word] for process in bench.processes().get("sleep", []))


def test_commands_see_the_folder_and_the_variables_of_who_runs_them(bench: Bench) -> None:
    with cluster.up(nodes=1) as own:
        finished = own.run(["sh", "-c", "pwd; echo $XDG_CACHE_HOME; exit 7"])
    assert finished.status == 7
    assert finished.output.split() == [str(Path.cwd()), str(bench.cache)]
