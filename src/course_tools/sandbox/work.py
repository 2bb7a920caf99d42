"""A student's work as the grader has it: jails that are started, asked, watched and ended, and the answer they make."""

import os
import secrets
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import Pipe
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import psutil

from course_tools.sandbox import wire
from course_tools.sandbox.jail import MIB, WRITABLE, Setting, command, variables
from course_tools.sandbox.student import NO_LIMIT, OPERATIONS
from distlab import simulate
from distlab.labs.answer import OwnAnswer, time_limit
from distlab.labs.answer_errors import AnswerError, Changed, Gone, NotDone, NotPlain, Raised, TookTooLong
from distlab.labs.plain_data import MOST_BYTES, Plain, plain
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
_ERRORS["Changed"] = lambda names: Changed([names[:240]])


class SandboxFailed(PlainError):
    """The system did not let a jail be made, or has ended it; not the student's fault."""


@dataclass
class Allowance:
    """Seconds that questions may take, and those that they took."""

    seconds: float
    used: float = 0.0


class CellRun(NamedTuple):
    """The end of what a cell printed, and how it failed: None, or class, message and line."""

    printed: str
    error: Raised | None


class Jail:
    """One process, in which so many `cells_run`. `gone` says why it has ended, None while it lives."""

    def __init__(self, setting: Setting) -> None:
        """Start it, with the setting's files. Starting is nobody's time. Raises SandboxFailed."""
        self.cells_run = 0
        self.gone: str | None = None
        self._limits = setting.limits
        self._waits: dict[int, float] = {}  # by process, seconds for a processor before it was asked
        self._scratch = tempfile.TemporaryDirectory(prefix="distlab-jail-", ignore_cleanup_errors=True)
        self._connection, theirs = Pipe()
        with theirs, tempfile.TemporaryFile("w+", errors="replace") as log:
            self._process = subprocess.Popen(
                command(setting, self._scratch.name),
                env=variables(setting, self._scratch.name),
                cwd="/",
                stdin=theirs.fileno(),
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            theirs.close()
            try:
                self.ask(Allowance(_SECONDS_TO_START), "write", setting.files)
            except AnswerError as error:
                log.seek(0)
                said = log.read().strip().splitlines() or [str(error)]
                raise SandboxFailed(f"{setting.kind}: {said[-1][:300]}") from None

    def ask(
        self, allowance: Allowance, what: str, *arguments: object, respond: Callable[[Plain], Plain] | None = None
    ) -> Plain:
        """What the method `what` of `student.Student` gives; the process is ended when the allowance is used up.

        `respond` answers what the process asks in return. Raises Gone, SandboxFailed, TookTooLong, Changed, and what
        the answer is if it is an error: an AnswerError or a SimulationError.
        """
        token = secrets.token_hex(8)  # so that nothing can be sent before it is asked for
        message: Any = {"do": what, "token": token, "arguments": list(arguments)}
        while True:
            match self._exchanged(message, token, allowance):  # every part of it may be forged
                case {"ask": question} if respond is not None:
                    message = {"response": respond(plain(question))}  # the judge's own time is nobody's
                case {"value": value}:
                    return plain(value)
                case {"error": [str(kind), str(text), _]} if kind in _ERRORS:
                    raise _ERRORS[kind](text[:2000])
                case {"error": [str(kind), str(text), line]}:
                    raise _raised(kind, text, line)
                case _:
                    raise AnswerError("its answer could not be understood")

    def end(self, why: str = "it was ended") -> None:
        """End all its processes."""
        self.gone = self.gone or why
        self._connection.close()
        for process in self._processes():  # in the weak jail they do not end with the first
            with suppress(psutil.Error):
                process.kill()
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._scratch.cleanup()

    def _exchanged(self, message: Any, token: str, allowance: Allowance) -> dict[Any, Plain]:
        """Send a message and wait for the next with that token as long as is allowed; in the main thread only."""
        if self.gone is not None:
            raise Gone(self.gone)
        self._waits.clear()
        began, waited = time.monotonic(), 0.0
        try:
            with time_limit(_SECONDS_TO_CROSS, "it"):
                wire.send(self._connection, message)
            while True:
                if allowance.used + time.monotonic() - began - waited >= allowance.seconds:
                    raise TookTooLong(f"it did not end within {allowance.seconds:g} s and was stopped")
                if self._connection.poll(_BETWEEN_LOOKS):
                    break
                waited = self._look()
            with time_limit(_SECONDS_TO_CROSS, "it"):
                match wire.receive(self._connection):
                    case {"token": str(given), **reply} if given == token:
                        return cast(dict[Any, Plain], reply)
            raise wire.BrokenMessage("it does not say to which question")
        except (TookTooLong, Gone) as stopped:
            error: Exception = stopped
        except (ConnectionError, EOFError):
            error = self._ended()
        except (wire.BrokenMessage, OSError) as broken:
            error = Gone(f"it sent something that is no answer: {broken}")
        finally:
            allowance.used += max(0.0, time.monotonic() - began - waited)
        self.end(str(error))
        raise error

    def _look(self) -> float:
        """Keep the limits on memory, processes and files; the seconds that a process has waited for a processor."""
        memory, alive, files, waited = 0, 0, 0, 0.0
        for process in self._processes():
            with suppress(psutil.Error, OSError, ValueError, IndexError):  # it has ended, or the system does not say
                memory += process.memory_info().rss
                alive += process.status() != psutil.STATUS_ZOMBIE
                waits = int(Path(f"/proc/{process.pid}/schedstat").read_text().split()[1]) / 1e9
                waited = max(waited, waits - self._waits.setdefault(process.pid, waits))
                for folder in WRITABLE:  # whoever is in no jail has not the first of them
                    disk = os.statvfs(f"/proc/{process.pid}/root{folder}")
                    files = max(files, disk.f_files - disk.f_ffree)
        for used, most, what in (
            (alive, self._limits.processes, "processes"),
            (memory // MIB, self._limits.memory // MIB, "MiB of memory"),
            (files, self._limits.files, "files"),
        ):
            if used > most:
                raise Gone(f"it used more than {most} {what} and was stopped")
        return waited

    def _processes(self) -> list[psutil.Process]:
        with suppress(psutil.Error):
            own = psutil.Process(self._process.pid)
            return [own, *own.children(recursive=True)]
        return []

    def _ended(self) -> Exception:
        """Why the process is gone although nobody has ended it."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(10)
        status = self._process.returncode or 0
        number = -status if status < 0 else status - 128
        if number == signal.SIGKILL:  # nothing inside can send it to the first process: the machine had no memory left
            return SandboxFailed("the machine ended the process of the student's code")
        how = f"was killed by signal {number}" if number > 0 else f"ended by itself with exit status {status}"
        return Gone(f"its process {how}")


class SandboxedWork:
    """The cells of one student, and an `Answer` (see `distlab.labs.answer`) made of them; use it in a `with` block.

    A cell that ended the process, or hung, or changed the checker's functions, is left out from then on: the next
    question finds a fresh process in which all other cells have run again. `changed` says whether the checker's
    functions have suffered. Everything may raise SandboxFailed.
    """

    def __init__(self, setting: Setting, seconds: float = float("inf")) -> None:
        """Everything together may take so many seconds."""
        self.changed = False
        self._setting, self._left, self._now = setting, seconds, Allowance(0.0)
        self._done: list[str] = []
        self._jails: dict[int, Jail] = {}

    def __enter__(self) -> "SandboxedWork":
        return self

    def __exit__(self, *exception: object) -> None:
        for each in self._jails.values():
            each.end()

    @property
    def is_out_of_time(self) -> bool:
        """Whether the time for everything is used up."""
        return self._now.used >= self._left

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
        self._left -= self._now.used
        self._now = Allowance(min(seconds, self._left))
        return self

    def value(self, name: str) -> Plain:
        """See Answer."""
        return self._ask("value", name)

    def call(self, name: str, *arguments: object, none_is_an_answer: bool = False, **keywords: object) -> Plain:
        """See Answer."""
        named = {"none_is_an_answer": none_is_an_answer, **keywords}
        return self._ask("call_with", name, plain(arguments), plain(named))

    def inside(
        self, function: Callable[..., object], *arguments: object, respond: Callable[[Plain], Plain] | None = None
    ) -> Plain:
        """See Answer."""
        place = function.__module__, function.__qualname__
        return self._ask("observe", *place, plain(arguments), respond is not None, respond=respond)

    def run(self, name: str, world: World, inputs: Iterable[Any] | None = None) -> Run:
        """See Answer: each rank of `world` does what the student's program, in a jail, asks of it."""
        jails = [self._jail(number) for number in range(min(world.size, MOST_JAILS))]
        sent = 0

        def asked(rank: Rank, what: str, *arguments: object) -> Plain:
            try:
                return self._ask(what, *arguments, jail=jails[rank.index % len(jails)])
            except Raised as error:
                if error.kind == "NotImplementedError":
                    raise NotImplementedError from None
                # The virtual cluster names the class of what a program raises, and knows asyncio's RuntimeError.
                raise type(error.kind, (RuntimeError,), {})(error.message) from None

        async def program(rank: Rank, *inputs: Plain) -> Plain:
            nonlocal sent
            asked(rank, "start_rank", name, rank.index, rank.size, *inputs)
            result = None
            while True:
                begun, awaited = asked(rank, "resume_rank", rank.index, result, rank.now), None
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
                result = await awaited

        program.__name__ = name
        given = None if inputs is None else cast(list[Plain], plain(list(inputs)))
        try:
            return OwnAnswer({name: program}, NO_LIMIT).run(name, world, given)
        except RankFailedError as error:
            if isinstance(error.__cause__, (AnswerError, SandboxFailed)):
                raise error.__cause__ from None
            raise

    def _ask(
        self, what: str, *arguments: object, jail: Jail | None = None, respond: Callable[[Plain], Plain] | None = None
    ) -> Plain:
        """Ask a jail, see `Jail.ask`, the first one if none is named."""
        jail = jail or self._jail(0)
        try:
            return jail.ask(self._now, what, *arguments, respond=respond)
        except Changed as error:
            self.changed = True
            jail.end(str(error))
            raise

    def _jail(self, number: int) -> Jail:
        """That jail, a new one if the last has ended, in which all cells have run."""
        jail = self._jails.get(number)
        if jail is None or jail.gone is not None:
            jail = self._jails[number] = Jail(self._setting)
        while jail.cells_run < len(self._done):
            jail.cells_run += 1
            self._ask("run_cell", self._done[jail.cells_run - 1], jail=jail)
        return jail


def _raised(kind: str, message: str, line: Plain) -> Raised:
    """The error of a student's code, of which everything may be forged."""
    return Raised(kind[:80], message[:2000], line if type(line) is int else None)
