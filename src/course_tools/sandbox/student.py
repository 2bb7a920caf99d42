"""Inside the sandbox: runs a student's cells and answers questions about what they made.

Whatever a student's code does to this process, it can only change its own answers; and where it replaces what the
judges' functions work with (`tamper_detection`), it has none.
"""

import importlib
import os
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Coroutine, Generator
from pathlib import Path
from types import coroutine
from typing import Any, cast

import numpy as np

from course_tools.sandbox import tamper_detection, wire
from course_tools.sandbox.cells import Cells
from course_tools.sandbox.confine import SandboxLimits
from distlab.labs.answer import OwnAnswer
from distlab.labs.answer_errors import AnswerError, NotDone, NotPlain, Raised, TookTooLong
from distlab.labs.plain_data import Array, Plain, PlainKey, plain
from distlab.runtime.errors import message_of
from distlab.simulate import ProgramError, SimulationError
from distlab.simulate.errors import check_addable, copy_message, is_of_asyncio, no_operation, not_awaited
from distlab.simulate.rank import NumberedRank

NO_LIMIT = 10.0**6


def live(connection: socket.socket, limits: SandboxLimits) -> None:
    """Answer questions until there are no more; never returns."""
    _close_all_but(connection)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    sys.path.insert(0, "")  # as in a notebook: modules next to it
    own = os.getpid()
    # Everything is looked up before a cell runs, so that replacing it later has no effect.
    send, receive, process, end = wire.send, wire.receive, os.getpid, os._exit
    token = ""

    def receive_fields() -> dict[str, Any]:
        return cast(dict[str, Any], receive(connection))  # the grader sends nothing else

    def ask(value: Plain) -> Plain:
        send(connection, {"token": token, "ask": plain(value)})
        return cast(Plain, receive_fields()["response"])

    student = Student(limits, ask)
    reply_to, changed = student.reply, tamper_detection.watch(*student.parts)
    send(connection, None)  # ready
    while True:
        try:
            question = receive_fields()
        except wire.Closed:
            end(0)
        token, is_rank = question.pop("token"), question["do"].endswith("_rank")
        reply = reply_to(question)
        if process() != own:  # a copy that the student's code has forked and let run on
            end(0)
        if not is_rank and (names := changed()):  # what a rank does, the grader's virtual cluster sees by itself
            reply = {"changed": list[Plain](names)}
        try:
            send(connection, {"token": token, **reply})
        except TypeError as error:
            send(connection, {"token": token, "error": ["NotPlain", f"the answer cannot be sent: {error}"]})


def _close_all_but(connection: socket.socket) -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nowhere, number)
    number = connection.fileno()
    os.closerange(3, number)
    os.closerange(number + 1, 65536)


class Student:
    """The student's namespace and the rank programs that run in it."""

    def __init__(self, limits: SandboxLimits, ask: Callable[[Plain], Plain]) -> None:
        """Nothing has run; `ask` asks the judge."""
        self._ask = ask
        self._cells = Cells(limits.printed)
        self._namespace = self._cells.namespace
        self._answer = OwnAnswer(self._namespace, NO_LIMIT)
        self._programs: dict[int, tuple[Coroutine[Operation, Plain, Any], RemoteRank]] = {}

    @property
    def parts(self) -> tuple[object, ...]:
        """The objects that answer."""
        return self, self._answer, self._cells

    def reply(self, question: dict[str, Any]) -> dict[PlainKey, Plain]:
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
        except BaseException as error:  # SystemExit and whatever else a student's code may raise
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

    def _call(self, name: str, arguments: list[Plain], keywords: dict[str, Plain], none_is_an_answer: bool) -> Plain:
        return self._answer.call(name, *arguments, none_is_an_answer=none_is_an_answer, **keywords)

    def _inside(self, module: str, function: str, arguments: list[Plain], asks: bool) -> Plain:
        looks = getattr(importlib.import_module(module), function)
        return self._answer.inside(looks, *arguments, respond=self._ask if asks else None)

    def _start_rank(self, name: str, rank: int, size: int, inputs: list[Plain]) -> Plain:
        """The first operation that the program `name` asks of its rank."""
        remote = RemoteRank(rank, size)
        self._programs[rank] = (self._answer.started(name, remote, *inputs), remote)
        return self._resume_rank(rank, None, 0.0)

    def _resume_rank(self, rank: int, result: Plain, now: float) -> Plain:
        """The next operation, after the last one returned `result`; ["return", value] at the end."""
        program, remote = self._programs[rank]
        try:
            return remote.resume(program, result, now)
        except StopIteration as end:
            del self._programs[rank]
            remote.check_nothing_pending()
            return ["return", None if end.value is ... else plain(end.value, f"what the program gives on rank {rank}")]


Operation = list[Plain]
"""What a rank asks the grader's virtual cluster for: the name of a method of `Rank`, and its arguments."""


@coroutine
def _asked(operation: Operation) -> Generator[Operation, Plain, Any]:
    return (yield operation)


class RemoteRank(NumberedRank):
    """The rank of a program in the sandbox, a `distlab.simulate.Rank` that asks the grader for every operation."""

    def __init__(self, index: int, size: int) -> None:
        """Rank `index` of `size`."""
        self.index, self.size, self.now = index, size, 0.0
        self._pending: str | None = None

    def resume(self, program: Coroutine[Operation, Plain, Any], result: Plain, now: float) -> Operation:
        """Let the program go on; returns the operation that it awaits next. Raises StopIteration and ProgramError."""
        self.now, self._pending = now, None
        try:
            operation = program.send(result)
        except RuntimeError as error:
            if is_of_asyncio(error):
                raise ProgramError(no_operation(self.index)) from error
            raise
        if not isinstance(operation, list) or self._pending is None:
            raise ProgramError(no_operation(self.index))
        return operation

    def check_nothing_pending(self) -> None:
        """Raise ProgramError for an operation whose `await` was forgotten."""
        if self._pending is not None:
            raise ProgramError(not_awaited(self.index, self._pending))

    def send(self, to: int, array: Array) -> Awaitable[None]:
        """See `distlab.simulate.Rank`."""
        return self._ask("send", plain(to), self._message(array))

    def receive(self, source: int) -> Awaitable[Array]:
        """See `distlab.simulate.Rank`."""
        return self._ask("receive", plain(source))

    def receive_any(self) -> Awaitable[tuple[int, Array]]:
        """See `distlab.simulate.Rank`."""
        return self._ask("receive_any")

    def exchange(self, to: int, array: Array, source: int) -> Awaitable[Array]:
        """See `distlab.simulate.Rank`."""
        return self._ask("exchange", plain(to), self._message(array), plain(source))

    async def _reduced(self, asked: Awaitable[None], array: Array) -> Array:
        await asked
        return array

    def reduce(self, array: Array, summand: Array) -> Awaitable[Array]:
        """See `distlab.simulate.Rank`."""
        self.check_nothing_pending()
        check_addable(self.index, array, summand)
        np.add(array, summand, array)
        return self._reduced(self._ask("reduce", plain(array)), array)

    def compute(self, seconds: float) -> Awaitable[None]:
        """See `distlab.simulate.Rank`."""
        return self._ask("compute", plain(seconds))

    def __repr__(self) -> str:
        return f"<rank {self.index} of {self.size} at {self.now:.9g} s>"

    def _message(self, array: Array) -> Array:
        return cast(Array, plain(copy_message(self.index, array), f"what rank {self.index} sends"))

    def _ask(self, operation: str, *arguments: Plain) -> Awaitable[Any]:
        self.check_nothing_pending()
        self._pending = operation
        return _asked([operation, *arguments])


def _text_of(error: BaseException) -> str:
    try:
        return message_of(error)[:2000]
    except BaseException:
        return ""


sys.setrecursionlimit(min(sys.getrecursionlimit(), 1000))
np.seterr(all="warn")
