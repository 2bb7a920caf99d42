"""A student's work as the grader has it: jails that are started, asked, watched and ended, and the answer they make."""

import os
import secrets
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from multiprocessing import Pipe
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import psutil

from course_tools.sandbox import wire
from course_tools.sandbox.jail import MIB, Setting, command, options, variables
from course_tools.sandbox.student import NO_LIMIT, OPERATIONS
from distlab import simulate
from distlab.labs.answer import OwnAnswer, time_limit
from distlab.labs.answer_errors import AnswerError, Changed, Gone, NotDone, NotPlain, Raised, TookTooLong
from distlab.labs.plain_data import MOST_BYTES, Plain, PlainKey, plain
from distlab.runtime.errors import PlainError
from distlab.simulate import ProgramError, Rank, RankFailedError, Run, World
from distlab.simulate.errors import no_operation

MOST_JAILS = 3
"""Of one student: ranks in several jails know of each other what messages tell; more ranks share them in turn."""
_MOST_BYTES_SENT = 16 * MOST_BYTES
_SECONDS_TO_START = 300.0
_BETWEEN_LOOKS = 0.2
_SECONDS_TO_CROSS = 120.0  # of a message that has begun
# What a program may raise itself; other errors of the virtual cluster are raised by the grader's own.
_OWN = (NotDone, NotPlain, ProgramError, simulate.NotAnArrayError, simulate.MismatchError)
_ERRORS: dict[str, Callable[[str], Exception]] = {error.__name__: error for error in _OWN}


class SandboxFailed(PlainError):
    """The system did not let a jail be made, or has ended it; not the student's fault."""


class CellRun(NamedTuple):
    """The end of what a cell printed, and how it failed: None, or class, message and line."""

    printed: str
    error: Raised | None


class SandboxedWork:
    """The cells of one student, and an `Answer` (see `distlab.labs.answer`) made of them; use it in a `with` block.

    A cell that ended the process, or hung, or changed the checker's functions, is left out from then on: the next
    question finds a fresh process in which all other cells have run again. `changed` says whether the checker's
    functions have suffered. Everything may raise SandboxFailed.
    """

    def __init__(self, setting: Setting, seconds: float = float("inf")) -> None:
        """Everything together may take so many seconds."""
        self.changed = False
        self._setting, self._seconds = setting, seconds
        self._used = 0.0  # seconds that the student's code has had
        self._limit, self._until = 0.0, 0.0  # the seconds for the questions of now, and the use at which they are over
        self._done: list[str] = []
        self._jails: dict[int, _Jail] = {}

    def __enter__(self) -> "SandboxedWork":
        return self

    def __exit__(self, *exception: object) -> None:
        for each in self._jails.values():
            each.end()

    @property
    def is_out_of_time(self) -> bool:
        """Whether the time for everything is used up."""
        return self._used >= self._seconds

    def run_cell(self, text: str, seconds: float) -> CellRun:
        """Run a cell; an exception in it is part of the result. Raises Gone and TookTooLong."""
        result = self.answer(seconds)._ask("run_cell", text)
        self._done.append(text)
        self._jails[0].cells_run += 1
        match result:  # it may be forged
            case [str(printed), [str(kind), str(message), line]]:
                return CellRun(printed[-4000:], _raised(kind, message, line))
            case [str(printed), None]:
                return CellRun(printed[-4000:], None)
        return CellRun("", None)

    def answer(self, seconds: float) -> "SandboxedWork":
        """What a judge may question: all questions together, until this is called again, may take `seconds`."""
        if self.is_out_of_time:
            raise TookTooLong("the time for the whole lab is used up")
        self._limit = min(seconds, self._seconds - self._used)
        self._until = self._used + self._limit
        return self

    def value(self, name: str) -> Plain:
        """See Answer."""
        return self._ask("value", name)

    def call(self, name: str, *arguments: object, none_is_an_answer: bool = False, **keywords: object) -> Plain:
        """See Answer."""
        return self._ask("call", name, *arguments, named={"none_is_an_answer": none_is_an_answer, **keywords})

    def inside(self, function: Callable[..., object], *arguments: object) -> Plain:
        """See Answer."""
        return self._ask("observe", function.__module__, function.__qualname__, *arguments)

    def run(self, name: str, world: World, inputs: Iterable[Any] | None = None) -> Run:
        """See Answer: each rank of `world` does what the student's program, in a jail, asks of it."""
        sent = 0

        def asked(rank: Rank, what: str, *arguments: object) -> Plain:
            try:
                return self._ask(what, rank.index, *arguments, jail=rank.index % MOST_JAILS)
            except Raised as error:
                if error.kind == "NotImplementedError":
                    raise NotImplementedError from None
                # The virtual cluster names the class of what a program raises, and knows asyncio's RuntimeError.
                raise type(error.kind, (RuntimeError,), {})(error.message) from None

        async def program(rank: Rank, *inputs: Plain) -> Plain:
            nonlocal sent
            begun = asked(rank, "start_rank", name, rank.size, *inputs)
            while True:
                awaited = None
                for step in begun if isinstance(begun, list) else []:
                    match step:  # the arguments may be anything: the cluster checks them
                        case ["return", returned]:
                            return returned
                        case [str() as operation, *arguments] if operation in OPERATIONS:
                            sent += sum(argument.nbytes for argument in arguments if isinstance(argument, np.ndarray))
                            if sent > _MOST_BYTES_SENT:
                                most = f"{_MOST_BYTES_SENT // MIB} MiB"
                                raise NotPlain(f"its ranks sent more than {most} in one run and were stopped")
                            awaited = getattr(rank, operation)(*arguments)
                if awaited is None:
                    raise ProgramError(no_operation(rank.index))
                begun = asked(rank, "resume_rank", await awaited, rank.now)

        program.__name__ = name
        given = None if inputs is None else cast(list[Plain], plain(list(inputs)))
        try:
            return OwnAnswer({name: program}, NO_LIMIT).run(name, world, given)
        except RankFailedError as error:
            if isinstance(error.__cause__, (AnswerError, SandboxFailed)):
                raise error.__cause__ from None
            raise

    def _ask(self, what: str, *arguments: object, named: dict[str, object] | None = None, jail: int = 0) -> Plain:
        """What the method `what` of `student.Student` gives in that jail.

        A new jail takes the place of one that has ended; all cells run in it first. Raises Gone, SandboxFailed,
        TookTooLong and Changed, which end it, and what the answer is if it is an error: an AnswerError or a
        SimulationError.
        """
        its = self._jails[jail] = self._jails.get(jail) or _Jail(self._setting)
        missed, its.cells_run = self._done[its.cells_run :], len(self._done)
        for cell in missed:
            self._ask("run_cell", cell, jail=jail)
        try:
            reply = self._reply(its, {"do": what, "arguments": plain(arguments), "named": plain(named or {})})
            if isinstance(names := reply.get("changed"), str):
                self.changed = True
                raise Changed([names[:240]])
        except BaseException:
            self._jails.pop(jail).end()
            raise
        match reply:  # every part of it may be forged
            case {"value": value}:
                return plain(value)
            case {"error": [str(kind), str(text), _]} if kind in _ERRORS:
                raise _ERRORS[kind](text[:2000])
            case {"error": [str(kind), str(text), line]}:
                raise _raised(kind, text, line)
        raise AnswerError("its answer could not be understood")

    def _reply(self, jail: "_Jail", question: dict[PlainKey, Plain]) -> dict[Any, Plain]:
        """Send a question and wait for its reply as long as is allowed; in the main thread only."""
        token = secrets.token_hex(8)  # so that nothing can be sent before it is asked for
        jail.waits.clear()
        began, waited = time.monotonic(), 0.0
        try:
            with time_limit(_SECONDS_TO_CROSS, "it"):
                wire.send(jail.connection, {"token": token, **question})
            while True:
                if self._used + time.monotonic() - began - waited >= self._until:
                    raise TookTooLong(f"it did not end within {self._limit:g} s and was stopped")
                if jail.connection.poll(_BETWEEN_LOOKS):
                    break
                waited = jail.look()
            with time_limit(_SECONDS_TO_CROSS, "it"):
                match wire.receive(jail.connection):
                    case {"token": str(given), **reply} if given == token:
                        return cast(dict[Any, Plain], reply)
            raise Gone("it sent something that does not say which question it answers")
        except (ConnectionError, EOFError):
            raise jail.ended() from None
        except (wire.BrokenMessage, OSError) as broken:
            raise Gone(f"it sent something that is no answer: {broken}") from None
        finally:
            self._used += max(0.0, time.monotonic() - began - waited)


class _Jail:
    """One process, in which so many `cells_run`; `waits` has its processes' seconds for a processor, by number."""

    def __init__(self, setting: Setting) -> None:
        """Start it, with the setting's files. Starting is nobody's time. Raises SandboxFailed."""
        self.cells_run = 0
        self.waits: dict[int, float] = {}
        self._limits = setting.limits
        self._scratch = tempfile.TemporaryDirectory(prefix="distlab-jail-", ignore_cleanup_errors=True)
        self.connection, theirs = Pipe()
        with tempfile.TemporaryFile("w+", errors="replace") as log:
            with theirs:
                self._process = subprocess.Popen(
                    command(setting, self._scratch.name),
                    env=variables(setting, self._scratch.name),
                    cwd="/",
                    stdin=theirs.fileno(),
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            try:
                wire.send(self.connection, cast(Plain, options(setting, self._scratch.name)))
                if not self.connection.poll(_SECONDS_TO_START):
                    raise TimeoutError(f"it did not start within {_SECONDS_TO_START:g} s")
                wire.receive(self.connection)
            except (OSError, EOFError) as error:
                self.end()
                log.seek(0)
                said = log.read().strip().splitlines() or [str(error)]
                raise SandboxFailed(f"{setting.kind}: {said[-1][:300]}") from None

    def look(self) -> float:
        """Keep the limits on memory and processes; the seconds that a process has waited for a processor."""
        memory, alive, waited = 0, 0, 0.0
        for process in self._processes():
            with suppress(psutil.Error, OSError, ValueError, IndexError):  # it has ended, or the system does not say
                memory += process.memory_info().rss
                alive += process.status() != psutil.STATUS_ZOMBIE
                waits = int(Path(f"/proc/{process.pid}/schedstat").read_text().split()[1]) / 1e9
                waited = max(waited, waits - self.waits.setdefault(process.pid, waits))
        if alive > self._limits.processes:
            raise Gone(f"it used more than {self._limits.processes} processes and was stopped")
        if memory > self._limits.memory:
            raise Gone(f"it used more than {self._limits.memory // MIB} MiB of memory and was stopped")
        return waited

    def ended(self) -> Exception:
        """Why the process is gone although nobody has ended it."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(10)
        status = self._process.returncode or 0
        number = -status if status < 0 else status - 128
        if number == signal.SIGKILL:  # nothing inside can send it to the first process: the machine had no memory left
            return SandboxFailed("the machine ended the process of the student's code")
        how = f"was killed by signal {number}" if number > 0 else f"ended by itself with exit status {status}"
        return Gone(f"its process {how}")

    def end(self) -> None:
        """End all its processes."""
        self.connection.close()
        for process in self._processes():  # in the weak jail they do not end with the first
            with suppress(psutil.Error):
                process.kill()
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._scratch.cleanup()

    def _processes(self) -> list[psutil.Process]:
        with suppress(psutil.Error):
            own = psutil.Process(self._process.pid)
            return [own, *own.children(recursive=True)]
        return []


def _raised(kind: str, message: str, line: Plain) -> Raised:
    """The error of a student's code, of which everything may be forged."""
    return Raised(kind[:80], message[:2000], line if type(line) is int else None)
