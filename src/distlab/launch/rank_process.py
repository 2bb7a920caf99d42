"""The process of one command or rank, which runs its program, says what becomes of it, and outlives what that starts.

    python -I -S rank_process.py SOCKET NAME SERVER COMMAND...

runs the command and ends as it did, as a shell says it. At SOCKET, unless it is "-", the launcher listens: mpirun and
its like mix the lines of their ranks and do not always say which rank failed, so each process has a connection of its
own. A process id and its NAME ("rank" gets the number that it has in the job) go first, then whatever the program
prints, and its end last. With a SERVER other than "-" the program is a fork of an interpreter that is ready (see
`fork_server`), unless that declines. On Linux a process whose parent has ended becomes a child of this one, also when
it has cleaned its environment and made a session of its own: what is left of the program at its end is killed. This
module imports the standard library only, so that it starts at once.
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
"""Comes on the socket before how the program ended, as the fields of `reports.Ended`; none prints it by chance."""
RANK, NONE = "rank", "-"

# A path of a socket has at most 103 characters; the folder's own name and the socket's follow.
_LONGEST_FOLDER = 60
# The launcher removes those that it has itself, so that what is set was set by whoever started the ranks: horovodrun
# with Gloo, Open MPI, MPICH, torchrun.
_RANK_VARIABLES = ("HOROVOD_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "RANK")


def command(program: Sequence[str], socket_path: str = NONE, name: str = NONE, server: str = NONE) -> list[str]:
    """What to run instead of a program's own command; the others as above."""
    return [sys.executable, "-I", "-S", __file__, socket_path, name, server, *program]


def folder_for_sockets() -> str | None:
    """Where a folder with Unix sockets is made: their paths must not be long; None for the usual temporary folder."""
    return None if len(tempfile.gettempdir()) <= _LONGEST_FOLDER else "/tmp"


def begin(name: str) -> None:
    """Tell the launcher, at standard output, who begins; from now on adopt descendants that lose their parent (Linux).

    The program is then started with the same standard output as a child of this process.
    """
    if sys.platform == "linux":
        pr_set_child_subreaper = 36
        ctypes.CDLL(None).prctl(pr_set_child_subreaper, 1, 0, 0, 0)
    if name != NONE:
        os.write(1, f"{os.getpid()} {name}\n".encode())


def end(name: str, status: int) -> None:
    """Tell how the program ended, at once, since mpirun may kill this process a second later; kill what is left."""
    if name != NONE:
        report = json.dumps({"status": status, "moment": time.monotonic()})  # by the clock of all processes here
        with suppress(OSError):  # the launcher may be gone
            os.write(1, f"{END}{report}\n".encode())
    children = Path(f"/proc/self/task/{os.getpid()}/children")  # Linux; theirs become children of this process
    while children.exists() and (left := children.read_text().split()):
        for pid in map(int, left):
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


def _outlive_signals(pass_on_to: int | None) -> None:
    """Let no signal end this process before its program; `pass_on_to` is the program if only this process is told."""

    def handle(number: int, _: object) -> None:
        if pass_on_to:
            with suppress(ProcessLookupError):
                os.kill(pass_on_to, number)

    # The last two: by them a user or a batch system says something to the program itself.
    for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(each, handle)


def _run(name: str, program: Sequence[str]) -> int:
    """Run a program until it and all that it started have ended; its exit status, −n after signal n."""
    begin(name)
    is_rank = name.startswith(RANK)
    try:
        # Alone, it has a session of its own, and the launcher ends it itself; under mpirun it stays in mpirun's.
        process = subprocess.Popen(program, start_new_session=not is_rank)
        _outlive_signals(process.pid if is_rank else None)
        status = process.wait()
    except OSError as error:
        print(error, file=sys.stderr, flush=True)
        status = 127
    end(name, status)
    return status


def _run_forked(name: str, program: Sequence[str], server: str) -> int | None:
    """Let the server run a program, for as long as this process lives; None when it is gone, or declines."""
    request = {
        "name": name,
        "arguments": program[1:],
        "environment": dict(os.environ),
        "folder": str(Path.cwd()),
        "processors": sorted(os.sched_getaffinity(0)),
    }
    with suppress(OSError), socket.socket(socket.AF_UNIX) as connection, connection.makefile() as answers:
        connection.connect(server)
        socket.send_fds(connection, [b"\n"], [0, 1, 2])
        connection.sendall(json.dumps(request).encode() + b"\n")
        if pid := answers.readline():
            _outlive_signals(int(pid))
            return int(answers.readline() or -signal.SIGKILL)
    return None


def main(socket_path: str, name: str, server: str, *program: str) -> None:
    """Run the program, and end this process as it did."""
    if socket_path != NONE:
        with socket.socket(socket.AF_UNIX) as launcher:
            launcher.connect(socket_path)
            for number in (1, 2):
                os.dup2(launcher.fileno(), number)
    if name == RANK:
        name = f"{name} {next(os.environ[variable] for variable in _RANK_VARIABLES if variable in os.environ)}"
    status = _run_forked(name, program, server) if server != NONE else None
    if status is None:
        status = _run(name, program)
    sys.exit(status if status >= 0 else 128 - status)


if __name__ == "__main__":
    main(*sys.argv[1:])
