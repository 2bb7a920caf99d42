"""Running a program by a fork of an interpreter that is ready, and by an interpreter of its own where that cannot be.

    python -I -S forked_program.py SOCKET PYTHON ARGUMENTS...

asks the `fork_server` that listens at SOCKET, and stands for the forked process: signals go to it, it has the same
exit status, and it ends when this process does. Without a server, or when that declines, this process becomes
`PYTHON ARGUMENTS…` itself. This module imports the standard library only, so that it starts at once.
"""

import json
import os
import signal
import socket
import struct
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NoReturn

_LENGTH = struct.Struct("!I")
_STREAMS = 3


@dataclass
class ProgramRequest:
    """What a process of its own would inherit: arguments without the interpreter, environment, folder, streams.

    processors: those that it may use.  streams: descriptors of its standard input, output and error.
    """

    arguments: list[str]
    environment: dict[str, str]
    folder: str
    umask: int
    processors: list[int]
    streams: tuple[int, ...] = (0, 1, 2)


def own_request(arguments: list[str]) -> ProgramRequest:
    """The request for a program that runs with what this process has. Linux only."""
    os.umask(umask := os.umask(0))
    return ProgramRequest(arguments, dict(os.environ), str(Path.cwd()), umask, sorted(os.sched_getaffinity(0)))


def send_request(connection: socket.socket, request: ProgramRequest) -> None:
    """Send it with its streams."""
    message = json.dumps(asdict(request)).encode()
    socket.send_fds(connection, [_LENGTH.pack(len(message))], list(request.streams))
    connection.sendall(message)


def receive_request(connection: socket.socket) -> ProgramRequest | None:
    """What `send_request` sent, the streams as descriptors of this process; None when the sender has gone."""
    length, streams, _, _ = socket.recv_fds(connection, _LENGTH.size, _STREAMS)
    message = b""
    if len(length) == _LENGTH.size:
        with connection.makefile("rb") as file:
            message = file.read(*_LENGTH.unpack(length))
    if not message:
        for number in streams:
            os.close(number)
        return None
    request = ProgramRequest(**json.loads(message))
    request.streams = tuple(streams)
    return request


def run(path: str, command: list[str]) -> int:
    """Run `PYTHON ARGUMENTS…` by the server that listens at `path`; its exit status, −n after signal n.

    Does not return when this process becomes the program itself.
    """
    try:
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(path)
        send_request(connection, own_request(command[1:]))
        answers = connection.makefile()
        pid = json.loads(answers.readline() or "{}").get("pid")
    except OSError:
        pid = None
    if pid is None:
        os.execv(command[0], command)

    def pass_on(number: int, frame: object) -> None:
        with suppress(ProcessLookupError):
            os.kill(pid, number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, pass_on)
    answer = json.loads(answers.readline() or "{}")
    return int(answer.get("status", -signal.SIGKILL))


def end_as(status: int) -> NoReturn:
    """End this process with an exit status, or by signal n if it is −n."""
    if status < 0:
        with suppress(OSError):  # the two that no program can choose
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


if __name__ == "__main__":
    end_as(run(sys.argv[1], sys.argv[2:]))
