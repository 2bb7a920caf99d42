"""`distlab cluster run`: signals and statuses pass through, and the end of the cluster is said."""

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest

from distlab.cluster import Cluster, layout, up
from distlab.cluster.running import ENDED_MEANWHILE
from distlab.launch import rank_process
from tests.distlab.cluster.cluster_bench import NEEDS_CLUSTER, Bench, command_line, until

pytestmark = [pytest.mark.slow, NEEDS_CLUSTER]

RUN = [sys.executable, "-m", "course_tools", "cluster", "run"]


def started(*command: str, name: str = "default", **options: object) -> subprocess.Popen[str]:
    words = [*RUN, "--name", name, "--", *command]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)  # type: ignore[call-overload,no-any-return]


def is_running(word: str, bench: Bench) -> Callable[[], bool]:
    return lambda: any(command_line(process) == ["sleep", word] for process in bench.processes().get("sleep", []))


def test_the_end_of_the_cluster_is_said_where_a_command_runs(bench: Bench) -> None:
    cluster = up("ends", nodes=2)
    with started("srun", "--nodes=2", "sh", "-c", "echo the task runs; sleep 600", name="ends") as command:
        assert command.stdout and command.stderr
        for _ in range(2):
            next(line for line in command.stdout if "the task runs" in line)
        cluster.down()
        assert command.wait(60) == ENDED_MEANWHILE
        assert command.stderr.read().endswith("The cluster 'ends' was ended while this command ran.\n")


def test_a_command_that_is_killed_says_nothing_of_a_cluster_that_runs(running: Cluster) -> None:
    with started("sh", "-c", "kill -9 $$") as command:
        assert command.communicate(timeout=300) == ("", "")
    assert command.returncode == -signal.SIGKILL


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_signal_to_the_command_line_ends_the_command(number: signal.Signals, running: Cluster, bench: Bench) -> None:
    word = f"98765{number}"
    with started("sleep", word) as command:
        until(is_running(word, bench), "the command runs")
        command.send_signal(number)
        assert command.wait(60) == -number
        until(lambda: not is_running(word, bench)(), "the command runs on")


def in_a_terminal(word: str, bench: Bench) -> tuple[int, int]:
    """The first program of a new terminal, whose command runs: its id, and the other end of the terminal."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvp(RUN[0], [*RUN, "--", "sleep", word])
    until(is_running(word, bench), "the command runs")
    return pid, terminal


def test_ctrl_c_in_a_terminal_ends_the_command(running: Cluster, bench: Bench) -> None:
    pid, terminal = in_a_terminal("987650", bench)
    os.write(terminal, b"\x03")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGINT
    until(lambda: not is_running("987650", bench)(), "the command runs on")
    os.close(terminal)


EARLY = """
import os, signal, subprocess
from distlab.cluster import running

class Login:
    name = "default"
    def entering(self, command):
        return command

start = subprocess.Popen
def started(*arguments, **options):
    process = start(*arguments, **options)
    os.kill(os.getpid(), signal.SIGINT)
    return process

subprocess.Popen = started
running.carry_out(Login(), ["sleep", "987652"])
"""


def test_ctrl_c_at_the_very_start_of_the_command_ends_it_too(bench: Bench) -> None:
    early = subprocess.run([sys.executable, "-c", EARLY], capture_output=True, text=True, timeout=300)
    assert (early.returncode, early.stderr) == (-signal.SIGINT, "")
    until(lambda: not is_running("987652", bench)(), "the command runs on")


def test_the_end_of_its_terminal_ends_the_command(running: Cluster, bench: Bench) -> None:
    pid, terminal = in_a_terminal("987651", bench)
    os.close(terminal)
    until(lambda: os.waitpid(pid, os.WNOHANG)[0] == pid, "the end of the terminal ends nothing")
    until(lambda: not is_running("987651", bench)(), "the command runs on")


def test_the_launcher_knows_by_which_file_it_is_in_a_cluster() -> None:
    assert rank_process.CONTROL_SOCKET == layout.CONTROL_SOCKET
