"""Inside the sandbox: runs a student's cells and answers questions about what they made.

Whatever a student's code does to this process, it can only change its own answers; and where it replaces what the
judges' functions work with (`unchanged`), it has none.
"""

import importlib
import os
import signal
import socket
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import numpy as np

from distlab.labs.answer import OwnAnswer
from distlab.labs.answer_errors import AnswerError, NotDone, NotPlain, Raised, TookTooLong
from distlab.labs.plain_data import Plain, plain
from distlab.sandbox import unchanged, wire
from distlab.sandbox.cells import Cells
from distlab.sandbox.limits import Limits
from distlab.sandbox.remote_rank import RemoteRank
from distlab.simulate import SimulationError

NO_LIMIT = 10.0**6


def live(connection: socket.socket, limits: Limits) -> None:
    """Answer questions until there are no more; never returns."""
    _close_all_but(connection)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    sys.path.insert(0, "")  # as in a notebook: modules beside it
    own = os.getpid()
    # Everything is looked up before a cell runs, that replacing it later is of no use.
    send, receive, process, end = wire.send, wire.receive, os.getpid, os._exit
    token = None

    def ask(value: Plain) -> Plain:
        send(connection, {"token": token, "ask": plain(value)})
        return receive(connection)["response"]

    student = Student(limits, ask)
    reply_to, changed = student.reply, unchanged.watch(*student.parts)
    send(connection, None)  # ready
    while True:
        try:
            question = receive(connection)
        except wire.Closed:
            end(0)
        token, is_rank = question.pop("token"), question["do"].endswith("_rank")
        reply = reply_to(question)
        if process() != own:  # a copy that the student's code has forked and let run on
            end(0)
        if not is_rank and (names := changed()):  # what a rank does, the grader's virtual cluster sees by itself
            reply = {"changed": names}
        try:
            send(connection, {"token": token, **reply})
        except TypeError as error:
            send(connection, {"token": token, "error": ["NotPlain", f"the answer cannot be sent: {error}"]})


def _close_all_but(connection: socket.socket) -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nowhere, number)
    kept = connection.fileno()
    os.closerange(3, kept)
    os.closerange(kept + 1, 65536)


class Student:
    """The student's namespace and the rank programs that run in it."""

    def __init__(self, limits: Limits, ask: Callable[[Plain], Plain]) -> None:
        """Nothing has run; `ask` asks the judge."""
        self._ask = ask
        self._cells = Cells(limits.printed)
        self._namespace = self._cells.namespace
        self._answer = OwnAnswer(self._namespace, NO_LIMIT)
        self._programs: dict[int, tuple[Coroutine, RemoteRank]] = {}

    @property
    def parts(self) -> tuple[object, ...]:
        """The objects that answer."""
        return self, self._answer, self._cells

    def reply(self, question: dict[str, Any]) -> Plain:
        """The answer to one question: {"value": …}, or {"error": [class, text, …]}."""
        ask = getattr(self, f"_{question.pop('do')}")
        try:
            return {"value": ask(**question)}
        except Raised as error:
            return {"error": ["Raised", error.kind, plain(error.message), error.line]}
        except (NotDone, NotPlain, TookTooLong) as error:
            return {"error": [type(error).__name__, str(error)]}
        except SimulationError as error:
            return {"error": ["SimulationError", type(error).__name__, str(error)]}
        except AnswerError as error:
            return {"error": ["NotPlain", str(error)]}
        except BaseException as error:  # SystemExit and what else a student's code may raise
            return {"error": ["Raised", type(error).__name__, _text_of(error), None]}

    def _files(self, files: dict[str, bytes]) -> None:
        for name, content in files.items():
            place = Path(name)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)

    def _run(self, text: str, name: str) -> Plain:
        return self._cells.run(text, name)

    def _value(self, name: str) -> Plain:
        return self._answer.value(name)

    def _call(self, name: str, arguments: list, keywords: dict, none_is_an_answer: bool) -> Plain:
        return self._answer.call(name, *arguments, none_is_an_answer=none_is_an_answer, **keywords)

    def _inside(self, module: str, function: str, arguments: list, asks: bool) -> Plain:
        looks = getattr(importlib.import_module(module), function)
        return self._answer.inside(looks, *arguments, respond=self._ask if asks else None)

    def _start_rank(self, name: str, rank: int, size: int, inputs: list) -> Plain:
        """The first operation that the program `name` asks of its rank."""
        remote = RemoteRank(rank, size)
        self._programs[rank] = (self._answer.started(name, remote, *inputs), remote)
        return self._resume_rank(rank, None, 0.0)

    def _resume_rank(self, rank: int, result: Plain, now: float) -> Plain:
        """The next operation, after the last one gave `result`; ["return", value] at the end."""
        coroutine, remote = self._programs[rank]
        try:
            return remote.resume(coroutine, result, now)
        except StopIteration as end:
            del self._programs[rank]
            remote.check_nothing_pending()
            return ["return", None if end.value is ... else plain(end.value, f"what the program gives on rank {rank}")]


def _text_of(error: BaseException) -> str:
    try:
        return str(error)[:2000]
    except BaseException:
        return ""


sys.setrecursionlimit(min(sys.getrecursionlimit(), 1000))
np.seterr(all="warn")
