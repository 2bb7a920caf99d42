"""The hosts of a job, each reached by one connection of ssh, over which everything there is started and reported."""

import itertools
import os
import queue
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from distlab.launch import host_process, rank_process
from distlab.launch.channel import Channel
from distlab.launch.host_process import SECONDS_OF_SILENCE
from distlab.launch.hosts import Host
from distlab.launch.job import Command, HostLost
from distlab.launch.remote import SECONDS_IN_DOUBT, SILENT, Loss, event
from distlab.launch.remote_shell import ShellServer
from distlab.launch.reports import Event
from distlab.runtime import processes

SECONDS_TO_CONNECT = 60
_SECONDS_TO_END = 6.0
_SSH_FAILED = 255


@dataclass
class HostState:
    """What is known of a host: what it has, why it cannot be used, whether all there is over."""

    name: str
    channel: Channel
    ready: dict[str, Any] | None = None
    problem: str | None = None
    is_over: bool = False
    shells: dict[str, Callable[[dict[str, Any]], None]] = field(default_factory=dict)


class HostConnections:
    """A `with` block: connected at its beginning, or HostLost; at its end nothing of the job is left on the hosts."""

    def __init__(self, hosts: Sequence[Host], settings: Mapping[str, Any], seconds: float) -> None:
        """`settings`: folder, files and environment of the programs. `seconds`: for all hosts to be ready."""
        self._hosts, self._settings, self._seconds = list(hosts), settings, seconds
        self._states: dict[str, HostState] = {}
        self._events: queue.Queue[Event] | None = None
        self._changed = threading.Condition()
        self._stack = ExitStack()
        self._shell_numbers = itertools.count(1)  # threads take one each
        self.result: str | None = None

    def __enter__(self) -> "HostConnections":
        mark = processes.new_mark()
        with ExitStack() as stack:
            stack.enter_context(processes.guarded(mark))
            stack.callback(self.end)
            for host in self._hosts:
                self._connect(host, mark)
            self._wait_until_ready()
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stack.close()

    def ready(self, host: str) -> dict[str, Any]:
        """What a host has: its cores, its gpus, free ports."""
        return self._states[host].ready or {}

    def follow(self, events: "queue.Queue[Event]") -> None:
        """Put what happens into this queue from now on."""
        self._events = events

    def starts(self, command: Command) -> bool:
        """Whether the command is for another host."""
        return command.host is not None

    def local_environment(self, folder: Path) -> dict[str, str]:
        """With this, mpirun and horovodrun find `remote_shell` instead of ssh."""
        server = ShellServer(self, folder)
        self._stack.callback(server.close)
        return {rank_process.FOLDER: str(folder), "PATH": f"{server.programs}{os.pathsep}{os.environ['PATH']}"}

    def start(self, command: Command, mark: str) -> None:
        """Start a command on its host."""
        assert command.host
        self._states[command.host].channel.send(
            start=command.name,
            command=command.arguments,
            environment=dict(command.environment),
            address=command.address,
        )

    def start_shell(self, host: str, text: str, folder: str, take: Callable[[dict[str, Any]], None]) -> str | None:
        """Let a host's shell run a text, in which `folder` becomes the host's own; its name, None for no such host."""
        if host not in self._states:
            return None
        name = f"shell {next(self._shell_numbers)}"
        self._states[host].shells[name] = take
        self._states[host].channel.send(shell=name, text=text, folder=folder)
        return name

    def end_shell(self, host: str, name: str) -> None:
        """End it, if it has not ended."""
        self._states[host].channel.send(kill=name)

    def loss(self) -> Loss | None:
        """The first host that does not answer any more."""
        for state in self._states.values():
            if state.channel.status is not None and not state.is_over:
                what = (
                    f"has closed its connection{_quoted(state.channel)}; what the job has started there ends by itself"
                )
                return Loss(state.name, what)
            if _silence(state) > SECONDS_OF_SILENCE:
                return Loss(state.name, SILENT)
        return None

    def silence(self) -> float:
        """For how many seconds the most silent of the hosts has given no sign."""
        return max(map(_silence, self._states.values()))

    def explanation(self) -> str:
        """Nothing more than what ranks say themselves."""
        return ""

    def end(self) -> None:
        """End everything on the hosts, and wait until those that answer say so."""
        for state in self._states.values():
            state.channel.send(end=True)
        deadline = time.monotonic() + _SECONDS_TO_END
        with self._changed:
            while any(_is_to_answer(state) for state in self._states.values()):
                if not self._changed.wait(deadline - time.monotonic()) and time.monotonic() >= deadline:
                    return

    def _connect(self, host: Host, mark: str) -> None:
        process = processes.start(
            ssh_command(host.name),
            mark,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            errors="replace",
        )
        with self._changed:  # a report must find the state
            channel = Channel(process, lambda _, report: self._take(host.name, report), closed=lambda _: self._closed())
            self._states[host.name] = HostState(host.name, channel)
        names = [each.name for each in self._hosts]
        settings = {**self._settings, "hosts": names, "ports": host.count + 1, "has_one_program": False}
        channel.send(prepare=settings)

    def _take(self, host: str, message: dict[str, Any]) -> None:
        with self._changed:
            state = self._states[host]
        match message:
            case {"name": name} if take := state.shells.get(name):
                take(message)
            case {"ready": ready}:
                state.ready = ready
            case {"error": problem}:
                state.problem = problem
            case {"over": True}:
                state.is_over = True
            case {"result": text}:
                self.result = text
            case _:
                happened = event(message, host)
                if happened and self._events:
                    self._events.put(happened)
                return
        self._closed()

    def _closed(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + self._seconds
        states = self._states.values()
        with self._changed:
            while not all(state.ready or _is_useless(state) for state in states):
                if not self._changed.wait(deadline - time.monotonic()) and time.monotonic() >= deadline:
                    break
        if unfit := [state for state in states if not state.ready]:
            # Others may only miss the address of one that does not exist.
            unfit = [state for state in unfit if not state.problem] or unfit
            sentences = [f"{state.name} {self._why_not(state)}." for state in unfit]
            raise HostLost(unfit[0].name, " ".join(sentences))

    def _why_not(self, state: HostState) -> str:
        status = state.channel.status
        if state.problem:
            return state.problem
        if status is None:
            return f"did not answer within {self._seconds:g} s; see what 'ssh {state.name} true' does"
        if status == _SSH_FAILED:
            test = f"'ssh {state.name} true' must work without a password"
            return f"cannot be reached by ssh{_quoted(state.channel)}; {test}"
        return (
            f"could not run {sys.executable} (exit code {status}){_quoted(state.channel)}; the course must be where "
            "all hosts see it"
        )


def ssh_command(host: str) -> list[str]:
    """What connects to the host's process, without ever asking for a password."""
    options = ["BatchMode=yes", f"ConnectTimeout={SECONDS_TO_CONNECT}", "ServerAliveInterval=10", "LogLevel=ERROR"]
    words = [word for option in options for word in ("-o", option)]
    there = shlex.join([sys.executable, "-I", "-S", host_process.__file__])
    return ["ssh", "-T", *words, host, f"exec {there}"]


def _is_useless(state: HostState) -> bool:
    return state.problem is not None or state.channel.status is not None


def _is_to_answer(state: HostState) -> bool:
    is_there = state.ready is not None and state.channel.status is None and _silence(state) < SECONDS_IN_DOUBT
    return is_there and not state.is_over


def _silence(state: HostState) -> float:
    return 0.0 if state.is_over else max(state.channel.silence().values(), default=0.0)


def _quoted(channel: Channel) -> str:
    said = [line.strip() for line in channel.said if line.strip()]
    return f" ({said[-1].rstrip('.')})" if said else ""
