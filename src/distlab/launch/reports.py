"""What the processes of a job report, as one queue of events: starts, lines of text, ends.

Each has a connection of its own; `rank_process` says what comes over it.
"""

import json
import queue
import socketserver
import threading
import time
from pathlib import Path
from typing import NamedTuple

from distlab.launch.rank_process import END
from distlab.runtime.startup_notes import NOTES

# Events that wait to be taken; a program that prints faster is held up.
_MOST_WAITING = 10_000
# A line that is longer comes in pieces.
_LONGEST_LINE = 65_536


class Started(NamedTuple):
    """A process has been started: it is a child of the process `pid`."""

    name: str
    pid: int


class Line(NamedTuple):
    """A process printed a line."""

    name: str
    text: str


class Ended(NamedTuple):
    """A process has ended, at a moment of the launcher's monotonic clock.

    `status` is None when nobody saw its exit status.
    """

    name: str
    status: int | None
    moment: float


class Reports(socketserver.ThreadingUnixStreamServer):
    """Listens at a Unix socket until the block is left, and puts what it is told into `events`."""

    daemon_threads = True
    request_queue_size = 1024

    def __init__(self, path: Path) -> None:
        """Listen at `path`."""
        super().__init__(str(path), _Reporter)
        self.events: queue.Queue[Started | Line | Ended] = queue.Queue(_MOST_WAITING)
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def __exit__(self, *error: object) -> None:
        """Listen no more."""
        self.shutdown()
        self.server_close()


class _Reporter(socketserver.BaseRequestHandler):
    """Takes what one process says, in a thread of its own."""

    server: Reports

    def handle(self) -> None:
        put = self.server.events.put
        with self.request.makefile(errors="replace") as lines:
            pid, name = lines.readline().rstrip("\n").split(" ", 1)
            put(Started(name, int(pid)))
            while line := lines.readline(_LONGEST_LINE):
                text, mark, end = line.rstrip("\n").partition(END)
                if (text or not mark) and not NOTES.match(text):
                    put(Line(name, text))
                if mark:
                    put(Ended(name, **json.loads(end)))
                    return
            put(Ended(name, None, time.monotonic()))
