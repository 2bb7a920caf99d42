"""The cluster on the command line, for root and for an ordinary user."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import distlab
from distlab import cluster
from distlab.cluster import Cluster
from distlab.cluster.record import ClusterRecord
from distlab.runtime import processes
from distlab.runtime.processes import Finished
from tests.distlab.cluster.cluster_bench import NEEDS_CLUSTER, Bench, lines_of_ranks, until, used_namespaces

pytestmark = [pytest.mark.slow, NEEDS_CLUSTER]
SOURCE, PACKAGES = Path(distlab.__file__).parents[1], Path(pytest.__file__).parents[1]
STUDENT = 12345


def distlab_cluster(*words: str) -> Finished:
    return processes.run([sys.executable, "-m", "course_tools", "cluster", *words], 600)


def test_run_passes_output_and_exit_status_through(running: Cluster) -> None:
    finished = distlab_cluster("run", "--", "srun", "--nodes", "3", "hostname")
    assert (finished.status, lines_of_ranks(finished.output)) == (0, ["node1", "node2", "node3"])
    assert distlab_cluster("run", "--", "sh", "-c", "exit 9") == Finished("", 9)


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
    words = ["sbatch", "--job-name=vanished", f"--chdir={tmp_path}", "--output=my logs/%j.out", "--wrap=hostname"]
    running.run(words)
    file = next(iter(re.findall(r"my logs/\d+.out", running.run(["scontrol", "show", "job"]).output)))
    until(lambda: "Could not open" in distlab_cluster("status").output, "the job has not failed")
    lines = [line.split(maxsplit=2)[1:] for line in distlab_cluster("status").output.splitlines()]
    sentence = f"Could not open stdout file {tmp_path}/{file}: No such file or directory; run `mkdir -p "
    assert ["vanished", f"{sentence}'{tmp_path}/my logs'`"] in lines, lines


def test_status_says_which_signal_has_ended_a_job(running: Cluster) -> None:
    running.run(["srun", "--job-name=killed", "sh", "-c", "kill -9 $$"])  # as srun ends its tasks after Ctrl-C
    lines = [line.split(maxsplit=2)[1:] for line in distlab_cluster("status").output.splitlines()]
    assert ["killed", "ended by SIGKILL, as by Ctrl-C"] in lines, lines


def test_status_says_so_when_slurmctld_is_dead(bench: Bench) -> None:
    before = set(bench.processes().get("slurmctld", []))  # of the cluster that other tests may use
    cluster.up("dead", nodes=1)
    for process in set(bench.processes()["slurmctld"]) - before:
        process.kill()
    for action in ("status", "up"):
        finished = distlab_cluster(action, "--name", "dead")
        assert finished.status == 1
        assert "no answer" in finished.output and "slurmctld does not answer, so that" in finished.output
        assert "end the cluster with 'distlab cluster down --name dead', then start it again." in finished.output
    assert distlab_cluster("down", "--name", "dead").output == "The cluster has ended; nothing of it stays.\n"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["run", "--name", "none", "--", "hostname"], "start it with 'distlab cluster up --name none'."),
        (["run"], "Say which command to run: distlab cluster run -- srun --nodes 3 hostname"),
        (
            ["run", "--", sys.executable, "-m", "course_tools", "cluster", "down"],
            "You are inside the cluster: leave it",
        ),
        (["status", "--name", "none"], "The cluster 'none' does not run"),
        (["up", "--name", "../x"], "'../x' is no name for a cluster"),
        (["link", "node7", "--cut"], "There is no node 'node7'; there are node1, node2, node3."),
        (["link", "node1", "--rate", "fast"], "'fast' is no rate"),
        (["link", "node1", "--cut", "--rate", "5mbit"], "Cut or restore a link first; then say its limits"),
    ],
)
def test_a_mistake_is_one_sentence(words: list[str], sentence: str, running: Cluster) -> None:
    finished = distlab_cluster(*words)
    assert finished.status == 2
    assert sentence in finished.output
    assert len(finished.output.splitlines()) == 1


@pytest.mark.parametrize("action", ["down", "status", "up"])
def test_on_a_node_a_command_about_the_cluster_is_refused(action: str, running: Cluster) -> None:
    own = [sys.executable, "-m", "course_tools", "cluster", action]
    finished = distlab_cluster("run", "--", "ssh", "node2", *own)
    assert (
        finished.output == "You are on node2, inside a cluster: leave it first, and repeat the command from outside.\n"
    )
    assert finished.status == 2
    assert ClusterRecord("default").folder.exists()


def test_a_second_start_with_another_number_of_nodes_says_that_it_changed_nothing(running: Cluster) -> None:
    assert distlab_cluster("up").status == 0
    finished = distlab_cluster("up", "--nodes", "2")
    assert finished.status == 1
    assert finished.output.endswith("It has 3 nodes, not 2: end it first, or start another one with --name.\n")


@pytest.mark.parametrize("damage", ["printf garbage >holder", "rm holder", "rm -r ."], ids=["changed", "lost", "all"])
def test_a_cluster_whose_record_was_lost_is_found_and_ended(bench: Bench, damage: str) -> None:
    before = {process for processes_alike in bench.processes().values() for process in processes_alike}
    cluster.up("lost", nodes=1)
    folder = ClusterRecord("lost").folder
    subprocess.run(["sh", "-c", damage.replace("rm -r .", f"rm -r {folder}")], cwd=folder, check=True)
    assert distlab_cluster("run", "--name", "lost", "--", "hostname").status == 0
    assert distlab_cluster("down", "--name", "lost").output == "The cluster has ended; nothing of it stays.\n"
    after = {process for processes_alike in bench.processes().values() for process in processes_alike}
    assert after <= before


def test_ending_a_cluster_that_does_not_run_is_no_mistake(bench: Bench) -> None:
    assert distlab_cluster("down", "--name", "none") == Finished("The cluster 'none' does not run.\n", 0)
    assert not list(bench.cache.rglob("cluster-none"))


@pytest.fixture
def student() -> Iterator[list[str]]:
    """The beginning of a command line that runs Python as an ordinary user of this machine, made up for the test."""
    if os.geteuid() != 0:
        pytest.skip("only root can become another user; all other tests run as an ordinary one")
    home = Path(tempfile.mkdtemp())
    try:
        home.chmod(0o755)
        (home / "cache").mkdir()
        os.chown(home / "cache", STUDENT, STUDENT)
        # First, where this machine has a student of its own.
        users = f"student:x:{STUDENT}:{STUDENT}::{home}:/bin/sh\n" + Path("/etc/passwd").read_text()
        (home / "passwd").write_text(users)
        yield [
            *("unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/passwd && cd / && exec "$@"', f"{home}/passwd"),
            *("setpriv", f"--reuid={STUDENT}", f"--regid={STUDENT}", "--clear-groups"),
            *("env", f"HOME={home}", f"XDG_CACHE_HOME={home}/cache", f"PYTHONPATH={SOURCE}:{PACKAGES}"),
            *("PYTHONDONTWRITEBYTECODE=1", _python_of_all()),
        ]
        assert list((home / "cache").iterdir()) == []
    finally:
        shutil.rmtree(home)


def _python_of_all() -> str:
    """An interpreter that another user may run."""
    user = ["setpriv", f"--reuid={STUDENT}", f"--regid={STUDENT}", "--clear-groups"]
    for python in (sys.executable, "/usr/bin/python3"):
        command = [*user, "env", f"PYTHONPATH={SOURCE}:{PACKAGES}", python, "-c", "import distlab.cluster, psutil"]
        if subprocess.run(command, capture_output=True, cwd="/", check=False).returncode == 0:
            return python
    return pytest.skip("no interpreter here may be run by another user")


AS_STUDENT = """
import sys
from distlab import cluster
if sentence := cluster.missing():
    sys.exit(sentence)
with cluster.up() as own:
    own.link("node1", rate="100mbit", latency="1ms")
    print(own.run(["srun", "--quiet", "--nodes=3", "sh", "-c", "id -un"]).output.split())
    print(own.run(["ssh", "node2", "id -un; hostname"]).output.split())
"""


def test_an_ordinary_user_has_a_cluster_too(student: list[str], bench: Bench) -> None:
    before = used_namespaces()
    finished = processes.run([*student, "-c", AS_STUDENT], 600)
    if "needs the right to create user namespaces" in finished.output:
        pytest.skip(finished.output)
    assert finished.output == "['student', 'student', 'student']\n['student', 'node2']\n"
    assert not bench.namespaces() - before
