"""The process of one rank, which runs its program and outlives whatever that starts.

    python -I -S rank_process.py SOCKET COMMAND...

runs the command, reports over the launcher's Unix socket (see `reports`), or over none if SOCKET is "-", and ends as
the command did. On Linux a process whose
parent has ended becomes a child of this one, also when it has cleaned its environment and made a session of its own:
what is left of the program at its end is killed. This module imports the standard library only, so that it starts at
once.
"""

import ctypes
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

# As in distlab.runtime.processes, which this process does not import.
MARK = "DISTLAB_RUN"
STATUS = "\x00distlab exit status "
"""Comes before a `RankEnd` on the socket; a text that no program prints by chance."""

SOCKET, RESULT = "{socket}", "{result}"
"""Stand in a command's arguments for the paths of the socket on which ranks report, and of the file of the result."""
SOCKET_NAME, RESULT_NAME = "ranks", "result.json"
# A path has at most 103 characters; the folder's own name and the socket's follow.
_LONGEST_FOLDER = 60
# As in distlab.cluster.namespaces: it exists in a cluster that runs on this machine, on all its nodes.
MUNGE_SOCKET = "/etc/slurm/munge.sock"

# The launcher removes those that it has itself, so that what is set was set by whoever started the ranks: horovodrun
# with Gloo, Open MPI, MPICH, torchrun.
RANK_VARIABLES = ("HOROVOD_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "RANK")

NOTICES = (signal.SIGUSR1, signal.SIGUSR2)
"""Signals by which a user or a batch system says something to the program itself."""


class RankEnd(NamedTuple):
    """How a rank's command ended; on the socket its values stand side by side.

    status: −n after signal n.  moment: in seconds, by the clock that all processes of this machine share.  was_asked:
    1 if the command had got a signal to end from whoever started it, otherwise 0.
    """

    status: int
    moment: float
    was_asked: int

    @classmethod
    def from_text(cls, text: str) -> "RankEnd":
        """The values that came after STATUS."""
        status, moment, was_asked = text.split()
        return cls(int(status), float(moment), int(was_asked))


def adopt() -> None:
    """From now on whoever loses its parent among this process's descendants becomes its child (Linux)."""
    if sys.platform == "linux":
        pr_set_child_subreaper = 36
        ctypes.CDLL(None).prctl(pr_set_child_subreaper, 1, 0, 0, 0)


def children() -> list[int]:
    """The process ids of this process's children, by the system's list (Linux)."""
    pids = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError, IndexError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            if int(fields[1]) == os.getpid():
                pids.append(int(folder.name))
    return pids


def kill_children() -> None:
    """Kill all children, and their own, which become children of this process then."""
    while left := children():
        for pid in left:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
            with suppress(OSError):
                os.waitpid(pid, 0)


def folder_for_sockets() -> str | None:
    """Where a folder with Unix sockets is made: their paths must not be long; None for the usual temporary folder.

    In a cluster on this machine, which ends its processes by SIGKILL, it is one that ends with the cluster.
    """
    if Path(MUNGE_SOCKET).is_socket():
        return "/dev/shm"
    return None if len(tempfile.gettempdir()) <= _LONGEST_FOLDER else "/tmp"


def run(command: list[str], output: int | None = None, tell: Callable[[RankEnd], object] = lambda end: None) -> int:
    """Run a program until it and all that it started have ended; its exit status, −n after signal n.

    `output`: the descriptor of its standard output and error, None for those of this process. `tell` gets the end of
    the program at once: mpirun may kill this process a second later.
    """
    adopt()
    # Alone, it has a session of its own, as every program that the launcher starts; under mpirun it stays in mpirun's.
    process = subprocess.Popen(command, stdout=output, stderr=output, start_new_session=output is None)
    requests = []

    def pass_on(number: int, frame: object) -> None:
        if number not in NOTICES:
            requests.append(number)
        process.send_signal(number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, *NOTICES):
        signal.signal(number, pass_on)
    status = process.wait()
    # horovodrun sends SIGTERM to the program itself.
    tell(RankEnd(status, time.monotonic(), int(bool(requests) or status == -signal.SIGTERM)))
    kill_children()
    return status


def report(path: str, command: list[str]) -> int:
    """Run a rank's command and tell the launcher that listens at `path`; the status as a shell gives it."""
    rank = next(os.environ[name] for name in RANK_VARIABLES if name in os.environ)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        mark = uuid.uuid4().hex
        connection.sendall(f"{rank} {os.getpid()} {mark}\n".encode())
        os.environ[MARK] = f"{os.environ.get(MARK, '')} {mark}"

        def tell(end: RankEnd) -> None:
            with suppress(OSError):  # the launcher may be gone
                connection.sendall(f"{STATUS}{' '.join(map(str, end))}\n".encode())

        status = run(command, connection.fileno(), tell)
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    socket_path, *command_of_rank = sys.argv[1:]
    own_status = run(command_of_rank) if socket_path == "-" else report(socket_path, command_of_rank)
    if own_status < 0:  # the same end for whoever waits for this process
        with suppress(OSError):
            signal.signal(-own_status, signal.SIG_DFL)
        os.kill(os.getpid(), -own_status)
    sys.exit(own_status)
