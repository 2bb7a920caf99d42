"""One jail as the grader has it: it is started, asked, watched and ended."""

import itertools
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import Pipe
from pathlib import Path
from typing import Any

import psutil

from course_tools.sandbox import jail, wire
from course_tools.sandbox.jail import INSIDE, MIB, Kind, Setting
from distlab import simulate
from distlab.labs.answer_errors import AnswerError, Changed, Gone, NotDone, NotPlain, Raised, TookTooLong
from distlab.labs.plain_data import Plain, PlainKey, plain
from distlab.runtime import environment

_SECONDS_TO_START = 300.0
_BETWEEN_LOOKS = 0.2
_FIRST_USER = 1_234_500_000
# Nothing else of the grader's environment reaches a student's code.
_KEPT_VARIABLES = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH")
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")  # for jails that run side by side
_SWITCHED_ON = ("PYTHONDONTWRITEBYTECODE", "OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")
# What a program may raise itself; other errors of the virtual cluster are raised by the grader's own.
_ERRORS = (NotDone, NotPlain, TookTooLong, simulate.ProgramError, simulate.NotAnArrayError, simulate.MismatchError)
_BY_NAME: dict[str, type[Exception]] = {error.__name__: error for error in _ERRORS}
_numbers = itertools.count()


class SandboxFailed(Exception):
    """The system did not let a jail be made; not the student's fault."""


def raised(kind: str, message: str, line: Plain) -> Raised:
    """The error of a student's code, of which everything may be forged."""
    return Raised(kind[:80], message[:2000], line if type(line) is int else None)


class Trouble(Gone):
    """The machine ended the process; not the student's fault."""


@dataclass
class Allowance:
    """Seconds that questions may take, and those that they took."""

    seconds: float
    used: float = 0.0


class Jail:
    """One student's process, in which so many `cells_run`. `gone` says why it has ended, None while it lives."""

    def __init__(self, setting: Setting) -> None:
        """Start it, with the setting's files. Starting is nobody's time. Raises SandboxFailed."""
        self.cells_run = 0
        self.gone: str | None = None
        self._setting = setting
        self._waits: dict[int, float] = {}  # by process, seconds for a processor before it was asked
        self._scratch = tempfile.TemporaryDirectory(prefix="distlab-jail-", ignore_cleanup_errors=True)
        self._connection, theirs = Pipe()
        # A user that no other jail of this machine has now.
        user = jail.NOBODY if setting.kind is Kind.WEAK else _FIRST_USER + 64 * os.getpid() + next(_numbers) % 64
        command = jail.command(setting, self._scratch.name, user, self._inner())
        with theirs, tempfile.TemporaryFile("w+", errors="replace") as log:
            self._process = subprocess.Popen(
                command,
                env=self._variables(),
                stdin=theirs.fileno(),
                stdout=log,
                stderr=log,
                cwd="/",
                start_new_session=True,
            )
            theirs.close()
            try:
                self.ask("write", [setting.files], {}, [Allowance(_SECONDS_TO_START)])
            except AnswerError as error:
                log.seek(0)
                said = log.read().strip().splitlines() or [str(error)]
                raise SandboxFailed(f"{setting.kind}: {said[-1][:300]}") from None

    def ask(
        self,
        what: str,
        arguments: Sequence[object],
        keywords: Mapping[str, object],
        allowances: Sequence[Allowance],
        respond: Callable[[Plain], Plain] | None = None,
    ) -> Plain:
        """What the method `what` of `student.Student` gives; the process is ended when an allowance is used up.

        `respond` answers what the process asks in return. Raises Gone, Trouble, TookTooLong, Changed, and what the
        answer is if it is an error: an AnswerError or a SimulationError.
        """
        token = secrets.token_hex(8)  # so that nothing can be sent before it is asked for
        question = {"do": what, "token": token, "arguments": list(arguments), "keywords": dict(keywords)}
        reply = self._exchanged(token, question, allowances)
        while respond is not None and set(reply) == {"ask"}:  # the judge's own time is nobody's
            reply = self._exchanged(token, {"response": respond(plain(reply["ask"]))}, allowances)
        match reply:  # every part of it may be forged
            case {"value": value}:
                return plain(value)
            case {"error": ["Changed", str(names), _]}:
                error = Changed([names[:240]])
                self.end(str(error))
                raise error
            case {"error": [str(kind), str(text), _]} if kind in _BY_NAME:
                raise _BY_NAME[kind](text[:2000])
            case {"error": [str(kind), str(text), line]}:
                raise raised(kind, text, line)
        raise AnswerError("its answer could not be understood")

    def end(self, why: str = "it was ended") -> None:
        """End all its processes."""
        self.gone = self.gone or why
        self._connection.close()
        for process in self._processes() if self._setting.kind is Kind.WEAK else ():  # elsewhere all end with the first
            with suppress(psutil.Error):
                process.kill()
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._scratch.cleanup()

    def _exchanged(self, token: str, message: Any, allowances: Sequence[Allowance]) -> dict[PlainKey, Plain]:
        """Send a message and wait for the next with that token as long as is allowed; in the main thread only."""
        if self.gone is not None:
            raise Gone(self.gone)
        began, waited = time.monotonic(), 0.0
        limit = min(allowances, key=lambda each: each.seconds - each.used)
        self._waits.clear()

        def look(*_: object) -> None:
            nonlocal waited
            waited = self._look()
            if time.monotonic() - began - waited >= limit.seconds - limit.used:
                raise TookTooLong(f"it did not end within {limit.seconds:g} s and was stopped")
            signal.setitimer(signal.ITIMER_REAL, _BETWEEN_LOOKS)  # not again once it has raised something

        try:
            handler = signal.signal(signal.SIGALRM, look)
            timer = signal.setitimer(signal.ITIMER_REAL, _BETWEEN_LOOKS)
            try:
                wire.send(self._connection, message)
                reply = wire.receive(self._connection)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
                signal.signal(signal.SIGALRM, handler)
                signal.setitimer(signal.ITIMER_REAL, *timer)
            if not isinstance(reply, dict) or reply.pop("token", None) != token:
                raise wire.BrokenMessage("it does not say to which question")
            return reply
        except (TookTooLong, Gone) as stopped:
            error: AnswerError = stopped
        except (ConnectionError, EOFError):
            error = self._ended()
        except (wire.BrokenMessage, OSError) as broken:
            error = Gone(f"it sent something that is no answer: {broken}")
        finally:
            for allowance in allowances:
                allowance.used += max(0.0, time.monotonic() - began - waited)
        self.end(str(error))
        raise error

    def _look(self) -> float:
        """Keep the limits on memory, processes and files; the seconds that a process has waited for a processor."""
        limits, memory, alive, files, waited = self._setting.limits, 0, 0, 0, 0.0
        for process in self._processes():
            with suppress(psutil.Error, OSError, ValueError, IndexError):  # it has ended, or the system does not say
                memory += process.memory_info().rss
                alive += process.status() != psutil.STATUS_ZOMBIE
                waits = int(Path(f"/proc/{process.pid}/schedstat").read_text().split()[1]) / 1e9
                waited = max(waited, waits - self._waits.setdefault(process.pid, waits))
                for folder in jail.WRITABLE:  # whoever is in no jail has not the first of them
                    disk = os.statvfs(f"/proc/{process.pid}/root{folder}")
                    files = max(files, disk.f_files - disk.f_ffree)
        for used, most, what in (
            (alive, limits.processes, "processes"),
            (memory // MIB, limits.memory // MIB, "MiB of memory"),
            (files, limits.files, "files"),
        ):
            if used > most:
                raise Gone(f"it used more than {most} {what} and was stopped")
        return waited

    def _processes(self) -> list[psutil.Process]:
        with suppress(psutil.Error):
            own = psutil.Process(self._process.pid)
            return [own, *own.children(recursive=True)]
        return []

    def _ended(self) -> Gone:
        """Why the process is gone although nobody has ended it."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(10)
        status = self._process.returncode or 0
        number = -status if status < 0 else status - 128
        if number not in set(signal.Signals):
            return Gone(f"its process ended by itself with exit status {status}")
        # Nothing inside can send SIGKILL to the first process: there was no memory left on the machine.
        kind = Trouble if number == signal.SIGKILL else Gone
        return kind(f"its process was killed by signal {number} ({signal.Signals(number).name})")

    def _inner(self) -> list[str]:
        """The command inside."""
        limits = self._setting.limits
        kernels = {"CORE": 0, "FSIZE": limits.file, "NOFILE": limits.open_files, "NPROC": limits.threads}
        if limits.address_space is not None:
            kernels["AS"] = limits.address_space
        folder = INSIDE
        if self._setting.kind is Kind.WEAK:
            folder = self._scratch.name
            if os.getuid() == 0:
                os.chown(folder, jail.NOBODY, jail.NOBODY)
            else:
                del kernels["NPROC"]  # it counts what the user runs elsewhere too
        options = {"limits": kernels, "folder": folder, "modules": [*self._setting.modules]}
        return [sys.executable, "-P", "-m", "course_tools.sandbox.student", json.dumps(options)]

    def _variables(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
        home = self._scratch.name if self._setting.kind is Kind.WEAK else "/tmp"
        own = {"HOME": home, "MPLBACKEND": "Agg", "PYTHONBREAKPOINT": "0"}  # nobody can answer a forgotten breakpoint()
        return environment.variables() | kept | dict.fromkeys([*_ONE_THREAD, *_SWITCHED_ON], "1") | own
