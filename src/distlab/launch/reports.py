"""What the processes of a job report, as one queue of events: lines of text, connections, ends.

    python reports.py SOCKET COMMAND...

runs the command of one rank under mpirun, horovodrun or torchrun, and tells the launcher what happens to it. mpirun and
its like mix the lines of their ranks and do not always say which rank failed. Here each rank has its own connection to
the launcher, a Unix socket: its number and process id go first, then whatever it prints, and its exit status last.
This module imports the standard library only, so that the rank's side starts at once.
"""

import os
import queue
import re
import signal
import socket
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

# The first that is set: horovodrun with Gloo, Open MPI, MPICH, torchrun.
_RANK_VARIABLES = ("HOROVOD_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "RANK")
# As in distlab.runtime.processes, which this process does not import.
MARK = "DISTLAB_RUN"
# A text that no program prints by chance.
_STATUS = "\x00distlab exit status "
# Which processor features there are, that there is no GPU: C++ notes that TF_CPP_MIN_LOG_LEVEL does not reach.
_NOTES = re.compile(
    r"WARNING: All log messages before absl|I\d{4} \d\d:|E\d{4} .*cuda_platform|\S+ \S+: I (tensor|ext)"
)


class Line(NamedTuple):
    """A process printed a line."""

    name: str
    text: str


class RankStarted(NamedTuple):
    """A rank under mpirun or its like has been started, by the process `pid`; what it runs carries the mark."""

    name: str
    pid: int
    mark: str


class Ended(NamedTuple):
    """A process has ended; `status` is None when nobody saw its exit status."""

    name: str
    status: int | None


class Reports:
    """The queue, and the threads that fill it."""

    def __init__(self) -> None:
        """Without any process."""
        self.events: queue.Queue[Line | RankStarted | Ended] = queue.Queue()
        self._threads: list[threading.Thread] = []
        self._closed = threading.Event()

    def follow(self, name: str, process: subprocess.Popen[str]) -> None:
        """Report a process of this one, its standard output being a text pipe."""
        self._start(self._read, name, process.stdout or ())
        # Apart from reading: a process that the program left behind may hold the pipe open.
        self._start(lambda: self.events.put(Ended(name, process.wait())))

    def listen(self, path: Path) -> None:
        """Report the ranks that connect to a Unix socket at `path` (see `main`)."""
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(path))
        listener.listen()
        listener.settimeout(0.2)
        self._start(self._accept, listener)

    def close(self) -> None:
        """Wait until all that was printed is in the queue; every process must have ended."""
        self._closed.set()
        while self._threads:
            self._threads.pop().join(timeout=2)

    def _start(self, work: Callable[..., object], *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self, listener: socket.socket) -> None:
        with listener:
            while not self._closed.is_set():
                with suppress(TimeoutError):
                    connection, _ = listener.accept()
                    self._start(self._follow_rank, connection)

    def _follow_rank(self, connection: socket.socket) -> None:
        with connection, connection.makefile(errors="replace") as lines:
            number, pid, mark = lines.readline().split()
            name = f"rank {number}"
            self.events.put(RankStarted(name, int(pid), mark))
            self.events.put(Ended(name, self._read(name, lines)))

    def _read(self, name: str, lines: Iterable[str]) -> int | None:
        """Report the lines until their end or until one of them holds the status, which is returned."""
        for line in lines:
            text, mark, status = line.rstrip("\n").partition(_STATUS)
            if (text or not mark) and not _NOTES.match(text):
                self.events.put(Line(name, text))
            if mark:
                return int(status)
        return None


def main() -> int:
    """Run the command of a rank; its exit status, 128 + n after signal n, as a shell gives it."""
    path, *command = sys.argv[1:]
    rank = next(os.environ[name] for name in _RANK_VARIABLES if name in os.environ)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        mark = uuid.uuid4().hex
        connection.sendall(f"{rank} {os.getpid()} {mark}\n".encode())
        marks = f"{os.environ.get(MARK, '')} {mark}"
        environment = os.environ | {MARK: marks}
        process = subprocess.Popen(command, env=environment, stdout=connection.fileno(), stderr=connection.fileno())
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda number, _: process.send_signal(number))
        status = process.wait()
        connection.sendall(f"{_STATUS}{status}\n".encode())
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main())
