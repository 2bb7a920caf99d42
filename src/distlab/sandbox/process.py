"""A student's process as the grader has it: the server that starts it, and the sandbox that answers or is ended."""

import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from distlab import simulate
from distlab.labs.answer_errors import AnswerError, Changed, Gone, NotDone, NotPlain, Raised, TookTooLong
from distlab.labs.plain_data import Plain, PlainKey
from distlab.runtime import environment
from distlab.sandbox import wire
from distlab.sandbox.confine import SandboxLimits

_SECONDS_TO_START = 60.0
_SECONDS_TO_END = 10.0
# Nothing else of the grader's environment reaches a student's code.
_KEPT_VARIABLES = ("LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH")
_OWN_VARIABLES = {
    "HOME": "/tmp",
    "MPLBACKEND": "Agg",
    "PYTHONDONTWRITEBYTECODE": "1",
    # One thread each: sandboxes run side by side, and a forked process has no other threads.
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}
# What a program may raise itself; other errors of the virtual cluster are raised by the grader's own.
_KNOWN_ERRORS = (simulate.ProgramError, simulate.NotAnArrayError, simulate.MismatchError)

Question = dict[PlainKey, Plain]
"""What a student's process is asked: "do" names a method of `student.Student`, the rest are its arguments."""


class ServerGone(Exception):
    """No sandbox can be started any more."""


class Server:
    """Starts sandboxes: a process that they are forked from (see `fork_server`); use it in a `with` block."""

    def __init__(self, modules: Sequence[str] = (), weak: bool = False) -> None:
        """`modules` are imported before the first sandbox; `weak` uses no namespaces even where they are allowed."""
        self._modules, self._weak = tuple(modules), weak
        self._lock = threading.Lock()

    def __enter__(self) -> "Server":
        self._folder = tempfile.TemporaryDirectory(prefix="distlab-grading-", ignore_cleanup_errors=True)
        self._connection, servers_end = socket.socketpair()
        kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
        variables = environment.variables() | kept | _OWN_VARIABLES | {"PATH": os.environ["PATH"]}
        arguments = [str(servers_end.fileno()), self._folder.name, *self._modules]
        self._log = Path(self._folder.name) / "server.log"
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "distlab.sandbox.fork_server", *arguments],
                env=variables,
                cwd=self._folder.name,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[servers_end.fileno()],
                start_new_session=True,
            )
        servers_end.close()
        return self

    def __exit__(self, *exception: object) -> None:
        self._connection.close()
        self._process.wait()
        self._folder.cleanup()

    def stop(self) -> None:
        """Start no sandbox any more, so that `start` in another thread raises ServerGone soon."""
        self._process.kill()

    def start(self, limits: SandboxLimits) -> tuple[socket.socket, socket.socket]:
        """A new sandbox, as two connections: to the student's process and to its keeper."""
        data, students = socket.socketpair()
        control, keepers = socket.socketpair()
        order = json.dumps({"limits": asdict(limits), "weak": self._weak}).encode()
        try:
            with self._lock:
                socket.send_fds(self._connection, [order], [students.fileno(), keepers.fileno()])
                if not self._connection.recv(1):
                    raise ServerGone(f"the process that starts sandboxes has ended: {self._last_line()}")
        except OSError as error:
            raise ServerGone(f"the process that starts sandboxes has ended: {self._last_line() or error}") from error
        finally:
            students.close()
            keepers.close()
        return data, control

    def _last_line(self) -> str:
        lines = self._log.read_text(errors="replace").splitlines()
        return lines[-1] if lines else ""


class SandboxFailed(Exception):
    """The system did not let a sandbox be made; not the student's fault."""


class Sandbox:
    """One student's process. `gone` says why it has ended, None while it lives."""

    def __init__(self, server: Server, limits: SandboxLimits, files: dict[str, bytes] | None = None) -> None:
        """`files` are put into its folder. Raises SandboxFailed."""
        self.gone: str | None = None
        self._data, self._control = server.start(limits)
        deadline = time.monotonic() + _SECONDS_TO_START
        try:
            wire.receive(self._data, deadline)
        except (wire.Closed, wire.OutOfTime, wire.BrokenMessage):
            raise SandboxFailed(self._end(by_itself=True) or "it did not start") from None
        if files:
            self.ask(deadline, {"do": "files", "files": {name: content for name, content in files.items()}})

    def ask(self, deadline: float, question: Question, respond: Callable[[Plain], Plain] | None = None) -> Plain:
        """What the student's process answers by `deadline` (of `time.monotonic()`), after which the process is ended.

        `respond` answers what the process asks in return. Raises Gone, TookTooLong, Changed, and what the answer is if
        it is an error: an AnswerError or a SimulationError.
        """
        if self.gone is not None:
            raise Gone(self.gone)
        started = time.monotonic()
        token = secrets.token_hex(8)  # so that nothing can be sent before it is asked for
        try:
            wire.send(self._data, {"token": token, **question}, deadline)
            reply = self._reply_to(token, deadline)
            while respond is not None and set(reply) == {"ask"}:
                wire.send(self._data, {"response": respond(reply["ask"])}, deadline)
                reply = self._reply_to(token, deadline)
        except wire.OutOfTime:
            self.gone = f"it did not end within {_rounded(time.monotonic() - started)} s and was stopped"
            self._end()
            raise TookTooLong(self.gone) from None
        except wire.Closed:
            self.gone = self._end(by_itself=True) or "its process has ended"
            raise Gone(self.gone) from None
        except wire.BrokenMessage as problem:
            self.gone = f"it sent something that is no answer: {problem}"
            self._end()
            raise Gone(self.gone) from None
        if set(reply) == {"value"}:
            return reply["value"]
        error = _error_of(reply)
        if isinstance(error, Changed):
            self.gone = str(error)
            self._end()
        raise error

    def _reply_to(self, token: str, deadline: float) -> dict[PlainKey, Plain]:
        """The next message, without the token that it must carry."""
        reply = wire.receive(self._data, deadline)
        if not isinstance(reply, dict) or not isinstance(reply.get("token"), str) or reply.pop("token") != token:
            raise wire.BrokenMessage("it does not say to which question")
        return reply

    def end(self) -> None:
        """End its processes; nothing of it is left when this returns."""
        if self.gone is None:
            self.gone = "it was ended"
            self._end()

    def stop(self) -> None:
        """Let its processes be ended, so that an `ask` in another thread raises Gone soon."""
        with suppress(OSError):
            self._control.shutdown(socket.SHUT_WR)

    def _end(self, by_itself: bool = False) -> str:
        """End it, if it has not ended by itself; returns the keeper's reason, "" if this is the only one."""
        message = b""
        with suppress(OSError):
            self._data.close()
            if not by_itself:
                self._control.shutdown(socket.SHUT_WR)
            self._control.settimeout(_SECONDS_TO_END)
            while part := self._control.recv(65536):
                message += part
        self._control.close()
        try:
            return str(json.loads(message)["reason"])
        except ValueError:
            return ""


def _rounded(seconds: float) -> str:
    return f"{seconds:.0f}" if seconds > 1.5 else f"{seconds:.1f}"


def _error_of(reply: dict[PlainKey, Plain]) -> Exception:
    """The exception that a reply describes; every part of the reply may be forged."""
    match reply:
        case {"error": ["Raised", str(kind), str(message), line]}:
            return Raised(kind[:80], message[:2000], line if type(line) is int else None)
        case {"error": ["NotDone", str(text)]}:
            return NotDone(text[:2000])
        case {"error": ["NotPlain", str(text)]}:
            return NotPlain(text[:2000])
        case {"changed": list(names)} if names and all(isinstance(name, str) for name in names):
            return Changed([str(name)[:80] for name in names[:3]])
        case {"error": ["SimulationError", str(kind), str(text)]}:
            known = {error.__name__: error for error in _KNOWN_ERRORS}
            return known.get(kind, simulate.ProgramError)(text[:2000])
    return AnswerError("its answer could not be understood")
