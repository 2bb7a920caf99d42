"""What the processes of a job report, as one queue of events: lines of text, starts, ends.

Ranks that mpirun and its like start report by a socket of their own (see `rank_process`), other processes by their
standard output and their exit status.
"""

import json
import queue
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, NamedTuple

from distlab.launch.rank_process import END
from distlab.runtime.startup_notes import NOTES

# Events that wait to be taken; a program that prints faster is held up.
_MOST_WAITING = 10_000
# A line that is longer comes in pieces.
_LONGEST_LINE = 65_536
_SECONDS_FOR_REST = 2.0


class Line(NamedTuple):
    """A process printed a line."""

    name: str
    text: str


class RankStarted(NamedTuple):
    """A rank has been started: it is the process `pid` or a child of that."""

    name: str
    pid: int


class Ended(NamedTuple):
    """A process has ended, at a moment of the launcher's monotonic clock.

    `status` is None when nobody saw its exit status.
    """

    name: str
    status: int | None
    moment: float


Event = Line | RankStarted | Ended


class Reports:
    """The queue, and the threads that fill it."""

    def __init__(self) -> None:
        """Without any process."""
        self.events: queue.Queue[Event] = queue.Queue(_MOST_WAITING)
        self._threads: list[threading.Thread] = []
        self._closed = threading.Event()

    def follow(self, name: str, process: subprocess.Popen[str]) -> None:
        """Report what a child process prints, and its end; its standard output must be a text pipe."""
        assert process.stdout
        self._start(self._read, name, process.stdout)
        # Apart from reading: a process that the program left behind may hold the pipe open.
        self._start(lambda: self.events.put(Ended(name, process.wait(), time.monotonic())))

    def listen(self, path: Path) -> None:
        """Report the ranks that connect to a Unix socket at `path`."""
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(path))
        listener.listen()
        listener.settimeout(0.2)
        self._start(self._accept, listener)

    def rest(self) -> Iterator[Event]:
        """What is left, until all that was printed has come; every process must have ended."""
        self._closed.set()
        deadline = time.monotonic() + _SECONDS_FOR_REST
        while any(thread.is_alive() for thread in self._threads) and time.monotonic() < deadline:
            with suppress(queue.Empty):
                yield self.events.get(timeout=0.05)
        while not self.events.empty():
            yield self.events.get()

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
            number, pid = lines.readline().split()
            name = f"rank {number}"
            self.events.put(RankStarted(name, int(pid)))
            self.events.put(self._read(name, lines) or Ended(name, None, time.monotonic()))

    def _read(self, name: str, lines: IO[str]) -> Ended | None:
        """Report the lines until their end or until one of them tells the rank's end, which is returned."""
        with lines:
            while line := lines.readline(_LONGEST_LINE):
                text, mark, end = line.rstrip("\n").partition(END)
                if (text or not mark) and not NOTES.match(text):
                    self.events.put(Line(name, text))
                if mark:
                    return Ended(name, **json.loads(end))
        return None
