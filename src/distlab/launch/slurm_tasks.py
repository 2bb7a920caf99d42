"""The tasks of a Slurm step: srun starts a host process for each, and is the connection to all of them."""

import os
import queue
import re
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from distlab.launch.channel import Channel
from distlab.launch.host_process import SECONDS_OF_SILENCE
from distlab.launch.job import Command
from distlab.launch.remote import SILENT, Loss, event
from distlab.launch.reports import Ended, Event, Line
from distlab.runtime import processes

SRUN = "srun"
RANK = "rank {rank}"
_SECONDS_TO_END, _SECONDS_FOR_SLURM = 6.0, 60.0
_QUEUED = re.compile(r"srun: job (\d+) (queued|has been allocated)")


class SlurmTasks:
    """One step; it is started by the command called srun, and each of its tasks runs `program`."""

    def __init__(self, settings: Mapping[str, Any], program: list[str], environment: Mapping[str, str]) -> None:
        self._settings, self._program, self._environment = settings, program, environment
        self._events: queue.Queue[Event] | None = None
        self._channel: Channel | None = None
        self._nodes: dict[int, str] = {}
        self._ended: set[int] = set()
        self._job: str | None = None
        self._step: str | None = None
        self.result: str | None = None

    def follow(self, events: "queue.Queue[Event]") -> None:
        """Put what happens into this queue from now on."""
        self._events = events

    def starts(self, command: Command) -> bool:
        """Whether the command is srun."""
        return command.name == SRUN

    def local_environment(self, folder: Path) -> dict[str, str]:
        """Nothing: no command on this machine starts ranks elsewhere."""
        return {}

    def start(self, command: Command, mark: str) -> None:
        """Start srun, and in each of its tasks the program."""
        process = processes.start(
            command.arguments,
            mark,
            env=command.whole_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            errors="replace",
        )
        self._channel = Channel(process, self._take, self._overhear, self._srun_ended)
        self._channel.send(prepare={**self._settings, "hosts": [], "ports": 0, "has_one_program": True})
        self._channel.send(start=RANK, command=self._program, environment=dict(self._environment), address=None)

    def loss(self) -> Loss | None:
        """The first host that does not answer any more."""
        for number, seconds in self._silences().items():
            if seconds > SECONDS_OF_SILENCE:
                return Loss(self._nodes.get(number, f"the node of rank {number}"), SILENT)
        return None

    def silence(self) -> float:
        """For how many seconds the most silent of the hosts has given no sign."""
        return max(self._silences().values(), default=0.0)

    def explanation(self) -> str:
        """Why Slurm lets the job wait, or what srun says."""
        if self._nodes or not self._channel:
            return ""
        if self._job:
            command = ["squeue", "--noheader", "--format=%r", f"--jobs={self._job}"]
            with suppress(OSError):
                answer = processes.run(command, _SECONDS_FOR_SLURM)
                if answer.status == 0 and (reason := answer.output.strip()):
                    return f"Slurm lets job {self._job} wait: {reason} (see 'squeue' and 'sinfo')."
        return f"srun says: {self._channel.said[-1] if self._channel.said else 'nothing'} (see 'squeue' and 'sinfo')."

    def end(self) -> None:
        """Let the tasks end, then srun; what is left of a job of its own is cancelled."""
        if not self._channel or self._channel.status is not None:
            return
        if self._nodes:
            self._channel.send(end=True)
            deadline = time.monotonic() + _SECONDS_TO_END
            while self._channel.status is None and time.monotonic() < deadline:
                time.sleep(0.05)
        if self._channel.status is None and self._job:
            with suppress(OSError):
                processes.run(
                    ["scancel", "--quiet", self._job + (f".{self._step}" if self._step else "")], _SECONDS_FOR_SLURM
                )

    def _silences(self) -> dict[int, float]:
        if not self._channel or self._channel.status is not None:
            return {}
        return {n: seconds for n, seconds in self._channel.silence().items() if n not in self._ended}

    def _take(self, number: int, message: dict[str, Any]) -> None:
        match message:
            case {"ready": ready}:
                self._nodes[number] = ready["host"]
                self._job = ready["job"]
                self._step = ready["step"] if "SLURM_JOB_ID" in os.environ else None
            case {"error": problem, "host": node}:
                self._put(Line(SRUN, f"error: {node} {problem}"))
            case {"result": text}:
                self.result = text
            case _:
                if happened := event(message, self._nodes.get(number, "")):
                    if isinstance(happened, Ended):
                        self._ended.add(number)
                    self._put(happened)

    def _overhear(self, line: str) -> None:
        if match := _QUEUED.match(line):
            self._job = match[1]
        self._put(Line(SRUN, line))

    def _srun_ended(self, status: int) -> None:
        self._put(Ended(SRUN, status, time.monotonic()))

    def _put(self, happened: Event) -> None:
        if self._events:
            self._events.put(happened)
