"""One running cluster: Slurm, ssh and MPI as on a real one, links that limit, the command line, a login node."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from distlab.cluster import Cluster
from distlab.cluster.login_node import LoginNode
from distlab.runtime import processes
from distlab.runtime.processes import Finished
from tests.distlab.cluster.cluster_bench import NEEDS_CLUSTER, Bench, command_line, lines_of_ranks, until
from tests.distlab.labs.solutions import namespace_of

pytestmark = [pytest.mark.slow, NEEDS_CLUSTER]


# Slurm, ssh and MPI


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


def test_every_rank_of_lab_15_sees_the_eight_gpus_of_its_node(
    running: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    (tmp_path / "script").write_text(namespace_of("15", solved=True)["gpus"])
    ask = 'import os; print(os.environ["CUDA_VISIBLE_DEVICES"], os.environ["SLURM_LOCALID"], flush=True)'
    (tmp_path / "train.py").write_text(ask)
    running.run(["sbatch", "--wait", f"--chdir={tmp_path}", "--output=log", str(tmp_path / "script")])
    expected = [f"0,1,2,3,4,5,6,7 {local}" for local in range(8) for _ in range(2)]
    assert lines_of_ranks((tmp_path / "log").read_text()) == expected


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
        "srun --nodes=3 --ntasks=3 --kill-on-bad-exit=1 --mpi=pmix",
        "mpirun -np 3 -H node1,node2,node3 --mca btl_tcp_if_include eth0 --mca oob_tcp_if_include eth0",
    ],
)
def test_the_ranks_of_mpi_are_started_as_one_job(starter: str, running: Cluster, tmp_path: Path) -> None:
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


# A login node


@pytest.fixture
def live(running: Cluster, tmp_path: Path) -> Iterator[LoginNode]:
    """A login node whose folder and lab are those of the test."""
    login = LoginNode(running, tmp_path, tmp_path / "lab")
    yield login
    login.close()


def test_a_record_of_real_jobs_gives_the_same_again(
    live: LoginNode, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = "#!/bin/bash\n#SBATCH --nodes=2 --ntasks-per-node=1 --output=%x.out\nsrun hostname\npwd\n"

    def use(login: LoginNode) -> list[object]:
        login.write("pair.sbatch", script)
        login.run("srun --nodes=3 --label hostname | sort")
        job = login.submit("sbatch pair.sbatch")
        state = login.wait(job)
        word = login.wait_for(job, "pair.sbatch.out", "^node(2)$")
        return [state, word, sorted(login.read("pair.sbatch.out").split()), login.measure("sum", lambda: 1 + 1)]

    measured = use(live)
    printed = capsys.readouterr().out
    assert "0: node1\n1: node2\n2: node3" in printed
    assert measured == ["COMPLETED", "2", ["node1", "node2", "~/jobs"], 2]
    assert "measured here" in live.source().lower()

    record = live.record()
    assert str(tmp_path) not in record.read_text()
    again = LoginNode(None, tmp_path, tmp_path / "lab")
    assert use(again) == measured
    assert capsys.readouterr().out == printed


def test_jobs_and_limits_end_with_the_login_node(live: LoginNode, running: Cluster) -> None:
    job = live.submit("sbatch --output=/dev/null --wrap 'srun sleep 600'")
    assert live.wait(job, until="RUNNING") == "RUNNING"
    live.link(rate="100mbit", latency="1ms")
    assert {link.rate for link in running.links().values()} == {100e6}
    live.close()
    assert {link.rate for link in running.links().values()} == {None}
    show = ["scontrol", "show", "job", str(job)]
    until(lambda: "JobState=COMPLETING" not in running.run(show).output, "the job is never over")
    assert running.run(show).output.count("JobState=CANCELLED") == 1


# The command line


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
    running.run(["scancel", "--name=rest"])
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
        (["run", "--", *CLUSTER, "down"], "You are on login, inside a cluster: leave it"),
        (["link", "node7", "--cut"], "There is no node 'node7'; did you mean node1 or node2 or node3?"),
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
    assert (finished.status, "The cluster runs already.\n" in finished.output) == (0, True)


# Links


# A bucket full of tokens passes at once.
MARGIN = 0.9
CONNECT = """
import socket, time
start = time.monotonic()
socket.create_connection(("10.99.0.2", 22))
print(time.monotonic() - start)
"""


def seconds_of(running: Cluster, command: str) -> float:
    start = time.monotonic()
    finished = running.run(["sh", "-c", command])
    assert finished.status == 0, finished.output
    return time.monotonic() - start


@pytest.fixture
def own(running: Cluster) -> Iterator[Cluster]:
    """The cluster, with its links as they are in the beginning."""
    yield running
    for node in running.nodes():
        running.link(node)
        running.restore(node)


def test_limits_hold_in_both_directions_and_go_away(own: Cluster) -> None:
    own.link("node2", rate="20mbit", latency="30ms")
    megabytes = "head -c 6000000 /dev/zero"
    for command in (f"ssh node2 {megabytes} | wc -c", f"{megabytes} | ssh node2 wc -c"):
        assert seconds_of(own, command) > MARGIN * 6_000_000 * 8 / 20e6
    assert float(own.run([sys.executable, "-c", CONNECT]).output) > MARGIN * 2 * 0.03
    own.link("node2", rate="50mbit")
    limits = ["ssh", "node2", "PATH=$PATH:/usr/sbin:/sbin tc qdisc show dev eth0"]
    assert "50Mbit" in own.run(limits).output
    own.link("node2")
    assert own.links()["node2"].rate is None and own.links()["node2"].latency is None
    assert "qdisc noqueue" in own.run(limits).output


def test_a_cut_cable_is_noticed_and_restored(own: Cluster) -> None:
    reach = ["ssh", "-o", "ConnectTimeout=2", "node3", "hostname"]
    own.cut("node3")
    assert own.run(reach).status == 255
    assert own.run(["ssh", "node2", "cat /sys/class/net/eth0/carrier"]).status == 0
    own.restore("node3")
    until(lambda: own.run(reach).output == "node3\n", "node3 is not reached again")
