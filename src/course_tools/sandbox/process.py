"""One jail as the grader has it: it is started, asked, watched and ended."""

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
from typing import Any, cast

import psutil

from course_tools.sandbox import jail, wire
from course_tools.sandbox.jail import INSIDE, MIB, Kind, Setting
from distlab import simulate
from distlab.labs.answer import time_limit
from distlab.labs.answer_errors import AnswerError, Changed, Gone, NotDone, NotPlain, Raised, TookTooLong
from distlab.labs.plain_data import Plain, plain
from distlab.runtime import environment
from distlab.runtime.errors import PlainError

_SECONDS_TO_START = 300.0
_BETWEEN_LOOKS = 0.2
_SECONDS_TO_CROSS = 120.0  # of a message that has begun
_FIRST_USER = 10**9
# Nothing else of the grader's environment reaches a student's code.
_KEPT_VARIABLES = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH")
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")  # for jails that run side by side
_SWITCHED_ON = ("PYTHONDONTWRITEBYTECODE", "OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")
# What a program may raise itself; other errors of the virtual cluster are raised by the grader's own.
_OWN = (NotDone, NotPlain, simulate.ProgramError, simulate.NotAnArrayError, simulate.MismatchError)
_ERRORS: dict[str, Callable[[str], Exception]] = {error.__name__: error for error in _OWN}
_ERRORS["Changed"] = lambda names: Changed([names[:240]])


class SandboxFailed(PlainError):
    """The system did not let a jail be made, or has ended it; not the student's fault."""


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
        user = jail.NOBODY if setting.kind is Kind.WEAK else _FIRST_USER + secrets.randbelow(_FIRST_USER)
        command = jail.command(setting, self._scratch.name, user, self._inner())
        with theirs, tempfile.TemporaryFile("w+", errors="replace") as log:
            options: dict[str, Any] = {"env": self._variables(), "cwd": "/", "start_new_session": True}
            self._process = subprocess.Popen(command, stdin=theirs.fileno(), stdout=log, stderr=log, **options)
            theirs.close()
            try:
                self.ask(Allowance(_SECONDS_TO_START), "write", [setting.files])
            except AnswerError as error:
                log.seek(0)
                said = log.read().strip().splitlines() or [str(error)]
                raise SandboxFailed(f"{setting.kind}: {said[-1][:300]}") from None

    def ask(
        self,
        allowance: Allowance,
        what: str,
        arguments: Sequence[object],
        keywords: Mapping[str, object] | None = None,
        respond: Callable[[Plain], Plain] | None = None,
    ) -> Plain:
        """What the method `what` of `student.Student` gives; the process is ended when the allowance is used up.

        `respond` answers what the process asks in return. Raises Gone, SandboxFailed, TookTooLong, Changed, and what
        the answer is if it is an error: an AnswerError or a SimulationError.
        """
        token = secrets.token_hex(8)  # so that nothing can be sent before it is asked for
        message: Any = {"do": what, "token": token, "arguments": list(arguments), "keywords": keywords or {}}
        while True:
            match self._exchanged(message, token, allowance):  # every part of it may be forged
                case {"ask": question} if respond is not None:
                    message = {"response": respond(plain(question))}  # the judge's own time is nobody's
                case {"value": value}:
                    return plain(value)
                case {"error": [str(kind), str(text), _]} if kind in _ERRORS:
                    raise _ERRORS[kind](text[:2000])
                case {"error": [str(kind), str(text), line]}:
                    raise raised(kind, text, line)
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

    def _inner(self) -> list[str]:
        """The command inside."""
        limits, folder = self._setting.limits, INSIDE
        kernels = {"CORE": 0, "FSIZE": limits.file, "NOFILE": limits.open_files, "NPROC": limits.threads}
        if limits.address_space is not None:
            kernels["AS"] = limits.address_space
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


def raised(kind: str, message: str, line: Plain) -> Raised:
    """The error of a student's code, of which everything may be forged."""
    return Raised(kind[:80], message[:2000], line if type(line) is int else None)
