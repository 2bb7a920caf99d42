"""A sandbox as the grader holds it: ask, within a deadline, or end it."""

import json
import secrets
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from distlab import simulate
from distlab.labs.answer_errors import AnswerError, Changed, Gone, NotDone, NotPlain, Raised, TookTooLong
from distlab.labs.plain_data import Plain
from distlab.sandbox import wire
from distlab.sandbox.limits import Limits
from distlab.sandbox.server import Server

_SECONDS_TO_START = 60.0
_SECONDS_TO_END = 10.0


class SandboxFailed(Exception):
    """The system did not let a sandbox be made; not the student's fault."""


class Sandbox:
    """One student's process. `gone` says why it has ended, None while it lives."""

    def __init__(self, server: Server, limits: Limits, files: dict[str, bytes] | None = None) -> None:
        """`files` are put into its folder. Raises SandboxFailed."""
        self.gone: str | None = None
        self._data, self._control = server.start(limits)
        deadline = time.monotonic() + _SECONDS_TO_START
        try:
            wire.receive(self._data, deadline)
        except (wire.Closed, wire.OutOfTime, wire.BrokenMessage):
            raise SandboxFailed(self._end(by_itself=True) or "it did not start") from None
        if files:
            self.ask(deadline, do="files", files=files)

    def ask(self, deadline: float, respond: Callable[[Plain], Plain] | None = None, **question: Any) -> Plain:
        """What the student's process answers by `deadline` (of `time.monotonic()`), after which the process is ended.

        `respond` gives the answers to what is asked back meanwhile. Raises Gone, TookTooLong, Changed, and what the
        answer is if it is an error: an AnswerError or a SimulationError.
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
        except wire.BrokenMessage as error:
            self.gone = f"it sent something that is no answer: {error}"
            self._end()
            raise Gone(self.gone) from None
        if set(reply) == {"value"}:
            return reply["value"]
        error = _error_of(reply)
        if isinstance(error, Changed):
            self.gone = str(error)
            self._end()
        raise error

    def _reply_to(self, token: str, deadline: float) -> dict:
        """The next message, without the token that it has to carry."""
        reply = wire.receive(self._data, deadline)
        given = reply.pop("token", None) if isinstance(reply, dict) else None
        if type(given) is not str or given != token:
            raise wire.BrokenMessage("it does not say to which question")
        return reply

    def end(self) -> None:
        """End its processes; nothing of it is left when this returns."""
        if self.gone is None:
            self.gone = "it was ended"
            self._end()

    def _end(self, by_itself: bool = False) -> str:
        """End it, if it has not ended by itself; gives the keeper's reason, "" if there was none but this."""
        said = b""
        with suppress(OSError):
            self._data.close()
            if not by_itself:
                self._control.shutdown(socket.SHUT_WR)
            self._control.settimeout(_SECONDS_TO_END)
            while part := self._control.recv(65536):
                said += part
        self._control.close()
        try:
            return json.loads(said)["reason"]
        except ValueError:
            return ""


def _rounded(seconds: float) -> str:
    return f"{seconds:.0f}" if seconds > 1.5 else f"{seconds:.1f}"


def _error_of(reply: Plain) -> Exception:
    """The exception that a reply describes; every part of the reply may be forged."""
    match reply:
        case {"error": ["Raised", str(kind), str(message), line]}:
            return Raised(kind[:80], message[:2000], line if type(line) is int else None)
        case {"error": ["NotDone", str(text)]}:
            return NotDone(text[:2000])
        case {"error": ["NotPlain", str(text)]}:
            return NotPlain(text[:2000])
        case {"changed": [*names]} if names and all(type(name) is str for name in names):
            return Changed([name[:80] for name in names[:3]])
        case {"error": ["SimulationError", str(kind), str(text)]}:
            known = getattr(simulate, kind, None) if kind in simulate.__all__ else None
            if known in (simulate.ProgramError, simulate.NotAnArrayError, simulate.MismatchError):
                return known(text[:2000])
            return simulate.ProgramError(text[:2000])
    return AnswerError("its answer could not be understood")
