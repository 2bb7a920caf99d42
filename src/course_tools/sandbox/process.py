"""A student's process as the grader has it: the sandbox that answers or is ended."""

import json
import secrets
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress

from course_tools.sandbox import wire
from course_tools.sandbox.confine import SandboxLimits
from course_tools.sandbox.server import Server
from course_tools.sandbox.student_time import SECONDS_BETWEEN_LOOKS, Allowance, Spent, StudentTime
from distlab import simulate
from distlab.labs.answer_errors import AnswerError, Changed, Gone, NotDone, NotPlain, Raised, TookTooLong
from distlab.labs.plain_data import Plain, PlainKey
from distlab.runtime.own_time import WatchedClock

_SECONDS_TO_START = 300.0
_SECONDS_TO_END = 10.0
_KILLED_FROM_OUTSIDE = "SIGKILL"  # nothing inside can send that to the first process
# What a program may raise itself; other errors of the virtual cluster are raised by the grader's own.
_KNOWN_ERRORS = (simulate.ProgramError, simulate.NotAnArrayError, simulate.MismatchError)

Question = dict[PlainKey, Plain]
"""What a student's process is asked: "do" names a method of `student.Student`, the rest are its arguments."""


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
