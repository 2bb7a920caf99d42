"""Slurm and ssh work on the cluster as on a real one."""

import os
import re
import sys
from pathlib import Path

import pytest

from distlab.cluster import Cluster, configuration
from distlab.runtime import processes
from tests.distlab.cluster.cluster_bench import NEEDS_CLUSTER, Bench, lines_of_ranks, until

pytestmark = [pytest.mark.slow, NEEDS_CLUSTER]


@pytest.mark.parametrize(
    ("version", "plugin"),
    [
        ("slurm-wlm 22.05.8", "cgroup/v1"),
        ("slurm-wlm 23.11.4", "cgroup/v1"),
        ("slurm 24.05.2", "disabled"),
        ("", "cgroup/v1"),
    ],
)
def test_no_version_of_slurm_asks_for_control_groups(version: str, plugin: str) -> None:
    assert configuration.cgroup(version) == f"CgroupPlugin={plugin}\n"


@pytest.mark.parametrize("kind", ["cgroup2", "tmpfs"])
def test_any_control_groups_will_do(kind: str, bench: Bench) -> None:
    """Of a machine with systemd, and of a container without any."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount other control groups")
    program = (
        "from distlab import cluster\nwith cluster.up('groups') as own: print(own.run(['srun', 'hostname']).output)"
    )
    mount = f'mount -t {kind} none /sys/fs/cgroup && exec "$@"'
    finished = processes.run(["unshare", "--mount", "sh", "-c", mount, "sh", sys.executable, "-c", program], 600)
    if "mount:" in finished.output:
        pytest.skip(finished.output)
    assert list(filter(None, lines_of_ranks(finished.output))) == ["node1"]


def job_state(running: Cluster, job: str) -> str:
    match = re.search(r"JobState=(\w+)", running.run(["scontrol", "show", "job", job]).output)
    assert match
    return match[1]


def test_srun_reaches_three_nodes(running: Cluster) -> None:
    finished = running.run(["srun", "--nodes=3", "hostname"])
    assert finished.status == 0, finished.output
    assert lines_of_ranks(finished.output) == ["node1", "node2", "node3"]


def test_a_batch_job_writes_to_the_shared_folder(running: Cluster, tmp_path: Path) -> None:
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/bash\nset -e\nsrun --nodes=2 hostname\necho last\n")
    submitted = running.run(["sbatch", "--parsable", "--nodes=2", f"--output={tmp_path}/out.txt", str(script)])
    job = submitted.output.strip()
    until(lambda: job_state(running, job) == "COMPLETED", f"job {job} is {job_state(running, job)}")
    output = (tmp_path / "out.txt").read_text()
    assert lines_of_ranks(output) == ["last", "node1", "node2"]
    assert output.endswith("\nlast\n")


def test_a_job_outlives_the_command_that_submits_it(running: Cluster, tmp_path: Path) -> None:
    script = tmp_path / "job.sh"
    script.write_text(f"#!/bin/bash\nwhile [ ! -e {tmp_path}/go ]; do sleep 0.05; done\n")
    job = running.run(["sbatch", "--parsable", "--output=/dev/null", str(script)]).output.strip()
    until(lambda: job_state(running, job) == "RUNNING", f"job {job} does not run")
    assert job_state(running, job) == "RUNNING"
    (tmp_path / "go").touch()
    until(lambda: job_state(running, job) == "COMPLETED", f"job {job} is {job_state(running, job)}")


def test_a_program_that_fails_gives_its_exit_status(running: Cluster) -> None:
    assert running.run(["srun", "sh", "-c", "exit 3"]).status == 3


def test_a_task_leaves_core_files_only_where_the_shell_does(running: Cluster) -> None:
    finished = running.run(["sh", "-c", "ulimit -S -c 0; srun sh -c 'ulimit -c'"])
    assert finished.output == "0\n"


def test_more_nodes_than_there_are_is_refused(running: Cluster) -> None:
    finished = running.run(["srun", "--nodes=4", "hostname"])
    assert finished.status != 0
    assert "Node count specification invalid" in finished.output


def test_ssh_reaches_a_node_and_leaves_nothing_at_home(running: Cluster) -> None:
    home = Path.home() / ".ssh"
    before = sorted(path.name for path in home.glob("*"))
    finished = running.run(["ssh", "node2", "hostname && ssh node3 hostname"])
    assert finished.output == "node2\nnode3\n"
    assert sorted(path.name for path in home.glob("*")) == before


def test_ssh_does_not_read_the_users_start_up_file(bench: Bench, tmp_path: Path) -> None:
    """Two shells that begin at the same time may disturb each other there, and what it prints is no rank's."""
    start_up = Path.home() / ".bashrc"
    if os.geteuid() != 0 or not start_up.is_file():
        pytest.skip("only root can put another file in the place of its ~/.bashrc, which must be there")
    talks = tmp_path / "talks"
    talks.write_text("echo talks\n")
    login = "print(own.run(['ssh', 'node1', 'hostname']).output)"
    program = f"from distlab import cluster\nwith cluster.up('start-up', nodes=1) as own: {login}"
    mount = f'mount --bind {talks} {start_up} && exec "$@"'
    finished = processes.run(["unshare", "--mount", "sh", "-c", mount, "sh", sys.executable, "-c", program], 600)
    if "mount:" in finished.output:
        pytest.skip(finished.output)
    assert finished.output.split() == ["node1"]


def test_the_variables_of_a_step_give_tf_config(running: Cluster) -> None:
    program = "from distlab.cluster_spec import from_slurm; print(from_slurm())"
    finished = running.run(["srun", "--nodes=3", "--ntasks=5", "--label", "python", "-c", program])
    assert finished.status == 0, finished.output
    assert finished.output.count("node1:") == 10  # two tasks on node1, in five texts


ADD_RANKS = """
import socket
from mpi4py import MPI
print(MPI.COMM_WORLD.allreduce(MPI.COMM_WORLD.rank), socket.gethostname())
"""


def test_srun_starts_the_ranks_of_mpi(running: Cluster) -> None:
    words = ["srun", "--nodes=3", "--ntasks=3", "--mpi=pmix"]
    finished = running.run([*words, sys.executable, "-c", ADD_RANKS])
    if "can not load PMIx library" in finished.output:
        pytest.skip("srun --mpi=pmix needs the package libpmix-dev")
    assert lines_of_ranks(finished.output) == ["3 node1", "3 node2", "3 node3"]


def test_mpirun_starts_its_ranks_by_ssh(running: Cluster, tmp_path: Path) -> None:
    program = tmp_path / "add_ranks.py"
    program.write_text(ADD_RANKS)
    words = ["mpirun", "-np", "3", "-H", "node1,node2,node3"]
    words += ["--mca", "btl_tcp_if_include", "eth0", "--mca", "oob_tcp_if_include", "eth0"]
    finished = running.run([*words, sys.executable, str(program)])
    assert lines_of_ranks(finished.output) == ["3 node1", "3 node2", "3 node3"]
