"""The cluster on the command line: output, exit statuses and signals pass through, and mistakes are one sentence."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from distlab.cluster import Cluster
from distlab.runtime import processes
from distlab.runtime.processes import Finished
from tests.distlab.cluster.cluster_bench import NEEDS_CLUSTER, Bench, command_line, lines_of_ranks, until

pytestmark = [pytest.mark.slow, NEEDS_CLUSTER]

CLUSTER = [sys.executable, "-m", "course_tools", "cluster"]


def distlab_cluster(*words: str) -> Finished:
    return processes.run([*CLUSTER, *words], 600)


def is_running(word: str, bench: Bench) -> bool:
    return any(command_line(process) == ["sleep", word] for process in bench.processes("sleep"))


def test_run_passes_output_and_exit_status_through(running: Cluster) -> None:
    finished = distlab_cluster("run", "--", "srun", "--nodes", "3", "hostname")
    assert (finished.status, lines_of_ranks(finished.output)) == (0, ["node1", "node2", "node3"])
    assert distlab_cluster("run", "--", "sh", "-c", "pwd; exit 9") == Finished(f"{Path.cwd()}\n", 9)


def test_a_signal_to_the_command_line_ends_the_command(running: Cluster, bench: Bench) -> None:
    word = "98765"
    with subprocess.Popen([*CLUSTER, "run", "--", "sleep", word]) as command:
        until(lambda: is_running(word, bench), "the command runs")
        command.send_signal(signal.SIGINT)
        assert command.wait(60) == -signal.SIGINT
        until(lambda: not is_running(word, bench), "the command runs on")


def test_status_shows_nodes_links_and_jobs(running: Cluster) -> None:
    assert distlab_cluster("link", "node2", "--rate", "100mbit", "--latency", "5ms").status == 0
    assert distlab_cluster("link", "node3", "--cut").status == 0
    running.run(["sbatch", "--job-name=rest", "--output=/dev/null", "--wrap=sleep 300"])
    lines = [line.split() for line in distlab_cluster("status").output.splitlines()]
    assert [word for word in lines[2] if word != lines[2][2]] == ["node2", "10.99.0.2", "100", "Mbit/s", "+5", "ms"]
    assert lines[3][3] == "cut"
    assert any(line[1:2] == ["rest"] for line in lines), lines
    assert distlab_cluster("link", "all").status == 0
    assert "Mbit" not in distlab_cluster("link", "node3", "--restore").output


def test_status_says_why_a_job_without_output_has_failed(running: Cluster, tmp_path: Path) -> None:
    words = ["sbatch", "--parsable", "--job-name=vanished", "--output=my logs/%j.out", "--wrap=hostname"]
    job = running.run([*words, f"--chdir={tmp_path}"]).output.strip()
    until(lambda: "Could not open" in distlab_cluster("status").output, "the job has not failed")
    output = distlab_cluster("status").output
    assert f"Job {job}: Could not open stdout file {tmp_path}/my logs/{job}.out: No such file or directory" in output
    assert [job, "vanished", "FAILED"] in [line.split()[:3] for line in output.splitlines()]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["run", "--name", "none", "--", "hostname"], "start it with 'distlab cluster up --name none'."),
        (["run", "--", *CLUSTER, "down"], "You are on login, inside a cluster: leave it"),
        (["link", "node7", "--cut"], "There is no node 'node7'; there are node1, node2, node3."),
        (["link", "node1", "--rate", "fast"], "'fast' is no rate"),
    ],
)
def test_a_mistake_is_one_sentence(words: list[str], sentence: str, running: Cluster) -> None:
    finished = distlab_cluster(*words)
    assert finished.status == 2
    assert sentence in finished.output
    assert len(finished.output.splitlines()) == 1


def test_a_second_start_says_that_it_changed_nothing(running: Cluster) -> None:
    finished = distlab_cluster("up")
    assert (finished.status, "The cluster 'default' runs already.\n" in finished.output) == (0, True)
