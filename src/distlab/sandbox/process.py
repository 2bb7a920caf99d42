"""A student's process as the grader has it: the server that starts it, and the sandbox that answers or is ended."""

import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from distlab import simulate
from distlab.labs.answer_errors import AnswerError, Changed, Gone, NotDone, NotPlain, Raised, TookTooLong
from distlab.labs.plain_data import Plain, PlainKey
from distlab.runtime import environment
from distlab.runtime.own_time import WatchedClock
from distlab.sandbox import control_groups, wire
from distlab.sandbox.confine import SandboxLimits
from distlab.sandbox.meter import Meter
from distlab.sandbox.student_time import SECONDS_BETWEEN_LOOKS, Allowance, Spent, StudentTime

_SECONDS_TO_START = 60.0
_SECONDS_TO_END = 10.0
_KILLED_FROM_OUTSIDE = "SIGKILL"  # nothing inside can send that to the first process
# Several processes of the grader send orders: each has to arrive as a whole.
_ONE_ORDER_AT_A_TIME = socket.SOCK_SEQPACKET if sys.platform == "linux" else socket.SOCK_STREAM
# Nothing else of the grader's environment reaches a student's code.
_KEPT_VARIABLES = ("LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH")
_OWN_VARIABLES = {
    "HOME": "/tmp",
    "MPLBACKEND": "Agg",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONBREAKPOINT": "0",  # a forgotten breakpoint() does nothing, since nobody can answer
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

    def __init__(
        self,
        modules: Sequence[str] = (),
        weak: bool = False,
        hidden: Sequence[str] = (),
        controllers: Sequence[str] = control_groups.CONTROLLERS,
    ) -> None:
        """`modules` are imported before the first sandbox; `weak` uses no namespaces even where they are allowed.

        `hidden` are paths of files and folders that no sandbox sees; without namespaces it sees them. `controllers` are
        those of the kernel's that sandboxes have limits by; where there are none, `why_counted` says why.
        """
        self._modules, self._weak, self._hidden = tuple(modules), weak, list(hidden)
        self._controllers = controllers
        self.group: control_groups.Group | None = None
        self.why_counted = ""

    def __enter__(self) -> "Server":
        try:
            self.group = self._new_group()
        except (control_groups.NoGroups, OSError) as reason:
            self.why_counted = str(reason)
        self._folder = tempfile.TemporaryDirectory(prefix="distlab-grading-", ignore_cleanup_errors=True)
        self._connection, servers_end = socket.socketpair(socket.AF_UNIX, _ONE_ORDER_AT_A_TIME)
        kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
        variables = environment.variables() | kept | _OWN_VARIABLES | {"PATH": os.environ["PATH"]}
        group = "" if self.group is None else str(self.group.path)
        arguments = [str(servers_end.fileno()), self._folder.name, group, *self._modules]
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
        self._process.wait()  # for all keepers too
        self._folder.cleanup()
        if self.group is not None:
            with suppress(OSError):  # an empty group harms nobody
                self.group.remove()

    @property
    def has_ended(self) -> bool:
        """Whether no sandbox can be started any more; asked in the process that has started this server."""
        return self._process.poll() is not None

    def leave(self) -> None:
        """In a forked process: start no sandbox any more; the other processes that have this server can."""
        self._connection.close()

    def start(self, limits: SandboxLimits, meter: Meter) -> tuple[socket.socket, socket.socket, int]:
        """A new sandbox, as two connections, to the student's process and to its keeper, and its number in the meter.

        Raises ServerGone.
        """
        data, students = socket.socketpair()
        control, keepers = socket.socketpair()
        number = meter.next_number()
        details = {"limits": asdict(limits), "weak": self._weak, "hidden": self._hidden, "number": number}
        if self.group is not None:
            details["group"] = {"name": meter.name, **asdict(control_groups.settings(limits, self._controllers))}
        try:
            descriptors = [students.fileno(), keepers.fileno(), meter.descriptor]
            socket.send_fds(self._connection, [json.dumps(details).encode()], descriptors)
        except OSError as error:
            raise ServerGone(f"the process that starts sandboxes {self._why_ended()}") from error
        finally:
            students.close()
            keepers.close()
        return data, control, number

    def _new_group(self) -> control_groups.Group:
        if self._weak and os.getuid():
            raise control_groups.NoGroups("without namespaces, a user's processes can leave the user's groups")
        return control_groups.with_limits(control_groups.own_groups(), self._controllers)

    def _why_ended(self) -> str:
        """Its error, if it had one. Its exit status only its parent could ask for, which is another process."""
        log = self._log.read_text(errors="replace").strip()
        if "Traceback" in log:
            return f"has ended: {log.splitlines()[-1]}"
        return "was killed, perhaps because memory was short; grade again, with AT_ONCE=1"


class SandboxFailed(Exception):
    """The system did not let a sandbox be made; not the student's fault."""


class Starved(Gone):
    """The machine was so busy that the far limit on the wall was reached; not the student's fault."""


class Killed(Gone):
    """Its process was killed from outside, as Linux does when the machine has no memory left."""


class _UsedUp(Exception):
    def __init__(self, allowance: Allowance) -> None:
        super().__init__()
        self.allowance = allowance


class _Waited(Exception):
    pass


class Sandbox:
    """One student's process. `gone` says why it has ended, None while it lives."""

    def __init__(
        self,
        server: Server,
        limits: SandboxLimits,
        files: dict[str, bytes] | None = None,
        student_time: StudentTime | None = None,
    ) -> None:
        """`files` are put into its folder; `student_time` counts for all sandboxes of a student. Raises SandboxFailed.

        Starting is not the student's: it has a deadline of its own.
        """
        self.gone: str | None = None
        self._time = student_time or StudentTime()
        self._data, self._control, _ = server.start(limits, self._time.meter)
        clock = WatchedClock()
        ends_by = clock.now() + _SECONDS_TO_START

        def deadline() -> float:
            if clock.now() > ends_by:
                raise wire.OutOfTime
            return SECONDS_BETWEEN_LOOKS

        try:
            wire.receive(self._data, deadline)
            if files:
                token = secrets.token_hex(8)
                contents: Plain = {name: content for name, content in files.items()}
                wire.send(self._data, {"token": token, "do": "files", "files": contents}, deadline)
                self._reply_to(token, deadline)
        except (wire.Closed, wire.OutOfTime, wire.BrokenMessage):
            raise SandboxFailed(self._end() or "it did not start") from None
        except BaseException:  # an interrupt: its server would wait for its end
            self._end()
            raise

    def ask(
        self,
        question: Question,
        allowances: Sequence[Allowance],
        respond: Callable[[Plain], Plain] | None = None,
    ) -> Plain:
        """What the student's process answers, which is ended when an allowance is used up.

        `respond` answers what the process asks in return. Raises Gone, TookTooLong, Starved, Changed, and what the
        answer is if it is an error: an AnswerError or a SimulationError.
        """
        if self.gone is not None:
            raise Gone(self.gone)

        def check(spent: Spent) -> None:
            for allowance in allowances:
                if allowance.is_used_up(spent):
                    raise _UsedUp(allowance)
                if allowance.is_starved(spent):
                    raise _Waited

        token = secrets.token_hex(8)  # so that nothing can be sent before it is asked for
        try:
            look = self._time.waiting(check)
            wire.send(self._data, {"token": token, **question}, look)
            reply = self._reply_to(token, look)
            while respond is not None and set(reply) == {"ask"}:
                check(self._time.answered())  # the judge's own time is nobody else's
                response = respond(reply["ask"])
                look = self._time.waiting(check)
                wire.send(self._data, {"response": response}, look)
                reply = self._reply_to(token, look)
            check(self._time.answered())
        except _UsedUp as limit:
            self.gone = f"it did not end within {limit.allowance.seconds:g} s and was stopped"
            self._end()
            raise TookTooLong(self.gone) from None
        except _Waited:
            self.gone = "the machine was too busy to let it end"
            self._end()
            raise Starved(self.gone) from None
        except wire.Closed:
            self.gone = self._end(by_itself=True) or "its process has ended"
            raise (Killed if _KILLED_FROM_OUTSIDE in self.gone else Gone)(self.gone) from None
        except wire.BrokenMessage as problem:
            self.gone = f"it sent something that is no answer: {problem}"
            self._end()
            raise Gone(self.gone) from None
        finally:
            self._time.answered()
        if set(reply) == {"value"}:
            return reply["value"]
        error = _error_of(reply)
        if isinstance(error, Changed):
            self.gone = str(error)
            self._end()
        raise error

    def _reply_to(self, token: str, deadline: wire.Deadline) -> dict[PlainKey, Plain]:
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
            # The first: where the student's process could not begin, it has told why, and then the keeper how it ended.
            return str(json.JSONDecoder().raw_decode(message.decode())[0]["reason"])
        except ValueError:
            return ""


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
