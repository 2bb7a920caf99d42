"""What the supervisor needs of processes on other hosts, whether ssh or Slurm has started them."""

import queue
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from distlab.launch.host_process import SECONDS_OF_SILENCE
from distlab.launch.job import Command
from distlab.launch.reports import Connected, Ended, Event, Line, RankStarted
from distlab.runtime.startup_notes import NOTES

SECONDS_IN_DOUBT = 3.0


class Loss(NamedTuple):
    """A host that does not answer any more, and the rest of a sentence that begins with its name."""

    host: str
    what: str


SILENT = (
    f"has not answered for {SECONDS_OF_SILENCE:g} s: it, its network or its launcher process is down; what the job has "
    "started there ends by itself after the same time"
)


class Remote(Protocol):
    """The processes of one job on other hosts."""

    result: str | None

    def follow(self, events: "queue.Queue[Event]") -> None:
        """Put what happens into this queue from now on."""

    def starts(self, command: Command) -> bool:
        """Whether it is this one's to start."""

    def start(self, command: Command, mark: str) -> None:
        """Start a command, on its host or by Slurm; what runs on this machine carries the mark."""

    def local_environment(self, folder: Path) -> dict[str, str]:
        """Variables of a command on this machine that starts ranks on the hosts; `folder` is that of the job."""

    def loss(self) -> Loss | None:
        """The first host that does not answer any more."""

    def silence(self) -> float:
        """For how many seconds the most silent of the hosts has given no sign."""

    def explanation(self) -> str:
        """Why ranks may not have started, as a sentence; "" where nothing is known."""

    def end(self) -> None:
        """End everything on the hosts, and wait until they say so, if they answer."""


def event(message: Mapping[str, Any], host: str) -> Event | None:
    """What a report of a host says happened; None for what only the launcher needs to know."""
    match message:
        case {"name": name, "line": text}:
            return None if NOTES.match(text) else Line(name, text)
        case {"name": name, "pid": pid}:
            return RankStarted(name, pid, "", host)
        case {"name": name, "connected": True}:
            return Connected(name)
        case {"name": name, "status": status}:
            # The clocks of two hosts have nothing in common: the moment is that at which the report comes.
            return Ended(name, status, time.monotonic(), bool(message.get("was_asked")))
    return None
