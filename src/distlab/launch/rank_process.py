"""The process of one rank, which runs its program and outlives whatever that starts.

    python -I -S rank_process.py SOCKET [--fork-by SERVER] COMMAND...

runs the command and ends as it did. At SOCKET, if it is not "-", the launcher listens: mpirun and its like mix the
lines of their ranks and do not always say which rank failed, so each rank has its own connection. Its number and
a process id go first, then whatever the program prints, and its end last. With SERVER the program is a fork of
an interpreter that is ready (see `fork_server`), unless that declines. On Linux a process whose parent has ended
becomes a child of this one, also when it has cleaned its environment and made a session of its own: what is left of
the program at its end is killed. This module imports the standard library only, so that it starts at once.
"""

import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

END = "\x00distlab end "
"""Comes on the socket before how the rank ended, as the fields of `reports.Ended`; no program prints it by chance."""

# A path of a socket has at most 103 characters; the folder's own name and the socket's follow.
_LONGEST_FOLDER = 60
# As in distlab.cluster.namespaces: it exists in a cluster that runs on this machine, on all its nodes.
MUNGE_SOCKET = "/etc/slurm/munge.sock"

# The launcher removes those that it has itself, so that what is set was set by whoever started the ranks: horovodrun
# with Gloo, Open MPI, MPICH, torchrun.
RANK_VARIABLES = ("HOROVOD_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "RANK")


def command(socket_path: str, program: Sequence[str], server: str | None = None) -> list[str]:
    """What to run instead of a program's own command; `socket_path` and `server` as above."""
    forked = ["--fork-by", server] if server else []
    return [sys.executable, "-I", "-S", __file__, socket_path, *forked, *program]


def folder_for_sockets() -> str | None:
    """Where a folder with Unix sockets is made: their paths must not be long; None for the usual temporary folder.

    In a cluster on this machine, which ends its processes by SIGKILL, it is one that ends with the cluster.
    """
    if Path(MUNGE_SOCKET).is_socket():
        return "/dev/shm"
    return None if len(tempfile.gettempdir()) <= _LONGEST_FOLDER else "/tmp"


def adopt() -> None:
    """From now on whoever loses its parent among this process's descendants becomes its child (Linux)."""
    if sys.platform == "linux":
        pr_set_child_subreaper = 36
        ctypes.CDLL(None).prctl(pr_set_child_subreaper, 1, 0, 0, 0)


def kill_children() -> None:
    """Kill all children, and their own, which become children of this process then."""
    while left := _children():
        for pid in left:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
            with suppress(OSError):
                os.waitpid(pid, 0)


def _children() -> list[int]:
    """The process ids of this process's children, by the system's list (Linux)."""
    pids = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError, IndexError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            if int(fields[1]) == os.getpid():
                pids.append(int(folder.name))
    return pids


class _Forked:
    """A program that the server has forked, as far as `run` uses a Popen; it ends when this process does."""

    def __init__(self, server: str, program: list[str], output: int | None) -> None:
        """Raises OSError, or KeyError, when there is no server any more, or it declines."""
        request = {
            "arguments": program[1:],
            "environment": dict(os.environ),
            "folder": str(Path.cwd()),
            "processors": sorted(os.sched_getaffinity(0)),
        }
        streams = [0, 1, 2] if output is None else [0, output, output]
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.connect(server)
        socket.send_fds(self._connection, [b"\n"], streams)
        self._connection.sendall(json.dumps(request).encode() + b"\n")
        self._answers = self._connection.makefile()
        self.pid = int(self._answer()["pid"])

    def begin(self) -> None:
        """Let it run the program; until then it waits."""
        self._connection.sendall(b"\n")

    def _answer(self) -> dict[str, int]:
        return dict(json.loads(self._answers.readline() or "{}"))

    def send_signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def wait(self) -> int:
        return self._answer().get("status", -signal.SIGKILL)


def _start(
    program: list[str], output: int | None, tell_start: Callable[[int], object]
) -> "subprocess.Popen[bytes] | _Forked":
    if program[0] == "--fork-by":
        server, program = program[1], program[2:]
        with suppress(OSError, KeyError):
            forked = _Forked(server, program, output)
            tell_start(forked.pid)
            forked.begin()
            return forked
    tell_start(os.getpid())
    # Alone, it has a session of its own, as every program that the launcher starts; under mpirun it stays in mpirun's.
    return subprocess.Popen(program, stdout=output, stderr=output, start_new_session=output is None)


def run(
    program: list[str],
    output: int | None = None,
    tell_start: Callable[[int], object] = lambda pid: None,
    tell_end: Callable[[int], object] = lambda status: None,
) -> int:
    """Run a program until it and all that it started have ended; its exit status, −n after signal n.

    `output`: the descriptor of its standard output and error, None for those of this process. `tell_start` gets, before
    the program prints anything, the id of the process that runs it or is its parent. `tell_end` gets at once, since
    mpirun may kill this process a second later, the status.
    """
    adopt()
    process = _start(program, output, tell_start)
    # The last two: by them a user or a batch system says something to the program itself.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, lambda number, frame: process.send_signal(number))
    status = process.wait()
    tell_end(status)
    kill_children()
    return status


def report(path: str, program: list[str]) -> int:
    """Run a rank's program and tell the launcher that listens at `path`; the status as a shell gives it."""
    rank = next(os.environ[name] for name in RANK_VARIABLES if name in os.environ)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)

        def tell_start(pid: int) -> None:
            connection.sendall(f"{rank} {pid}\n".encode())

        def tell_end(status: int) -> None:
            # By the clock that all processes of this machine share.
            end = json.dumps({"status": status, "moment": time.monotonic()})
            with suppress(OSError):  # the launcher may be gone
                connection.sendall(f"{END}{end}\n".encode())

        status = run(program, connection.fileno(), tell_start, tell_end)
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    own_socket, *own_program = sys.argv[1:]
    own_status = run(own_program) if own_socket == "-" else report(own_socket, own_program)
    if own_status < 0:  # the same end for whoever waits for this process
        with suppress(OSError):
            signal.signal(-own_status, signal.SIG_DFL)
        os.kill(os.getpid(), -own_status)
    sys.exit(own_status)
