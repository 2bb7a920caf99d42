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
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

END = "\x00distlab end "
"""Comes on the socket before how the rank ended, as the fields of `reports.Ended`; no program prints it by chance."""

# A path of a socket has at most 103 characters; the folder's own name and the socket's follow.
_LONGEST_FOLDER = 60
# The launcher removes those that it has itself, so that what is set was set by whoever started the ranks: horovodrun
# with Gloo, Open MPI, MPICH, torchrun.
_RANK_VARIABLES = ("HOROVOD_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "RANK")


def command(socket_path: str, program: Sequence[str], server: str | None = None) -> list[str]:
    """What to run instead of a program's own command; `socket_path` and `server` as above."""
    forked = ["--fork-by", server] if server else []
    return [sys.executable, "-I", "-S", __file__, socket_path, *forked, *program]


def folder_for_sockets() -> str | None:
    """Where a folder with Unix sockets is made: their paths must not be long; None for the usual temporary folder."""
    return None if len(tempfile.gettempdir()) <= _LONGEST_FOLDER else "/tmp"


def adopt() -> None:
    """From now on whoever loses its parent among this process's descendants becomes its child (Linux)."""
    if sys.platform == "linux":
        pr_set_child_subreaper = 36
        ctypes.CDLL(None).prctl(pr_set_child_subreaper, 1, 0, 0, 0)


def kill_children() -> None:
    """Kill all children, and their own, which become children of this process then (Linux)."""
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    while children.exists() and (left := children.read_text().split()):
        for pid in map(int, left):
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


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


def run(program: list[str], launcher: socket.socket | None = None) -> int:
    """Run a program until it and all that it started have ended; its exit status, −n after signal n.

    The launcher gets all that it prints, and at once, since mpirun may kill this process a second later, its end.
    """
    adopt()
    output = launcher.fileno() if launcher else None
    process: subprocess.Popen[bytes] | _Forked | None = None
    if program[0] == "--fork-by":
        server, program = program[1], program[2:]
        with suppress(OSError, KeyError):
            process = _Forked(server, program, output)
    if launcher:
        rank = next(os.environ[name] for name in _RANK_VARIABLES if name in os.environ)
        launcher.sendall(f"{rank} {process.pid if process else os.getpid()}\n".encode())
    if isinstance(process, _Forked):
        process.begin()
    else:
        # Alone, it has a session of its own; under mpirun it stays in mpirun's.
        process = subprocess.Popen(program, stdout=output, stderr=output, start_new_session=launcher is None)
    # The last two: by them a user or a batch system says something to the program itself.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, lambda number, frame: process.send_signal(number))
    status = process.wait()
    if launcher:
        end = json.dumps({"status": status, "moment": time.monotonic()})  # by the clock of all processes here
        with suppress(OSError):  # the launcher may be gone
            launcher.sendall(f"{END}{end}\n".encode())
    kill_children()
    return status


def main(socket_path: str, program: list[str]) -> None:
    """Run the program, and end this process as it did."""
    if socket_path != "-":
        with socket.socket(socket.AF_UNIX) as launcher:
            launcher.connect(socket_path)
            status = run(program, launcher)
        sys.exit(status if status >= 0 else 128 - status)  # as a shell says it
    status = run(program)
    if status < 0:  # the same end for whoever waits for this process
        with suppress(OSError):
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    sys.exit(status)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
