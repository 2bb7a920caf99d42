"""Runs a job: starts it, shows its output line by line, watches its deadlines, and leaves no process behind."""

import json
import queue
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

import psutil

from distlab.launch import fork_server, rank_process
from distlab.launch.first_failure import LEFT_WORKER, Cause, in_order
from distlab.launch.job import (
    HOST,
    RESULT,
    DeadlinePassed,
    Job,
    LaunchedProgram,
    LaunchedRun,
    LaunchError,
    PortTaken,
    WorkerFailed,
    WorkerMissing,
    is_open,
)
from distlab.launch.reports import Ended, Line, Reports, Started
from distlab.runtime import processes

_SOCKET_NAME, _RESULT_NAME = "ranks", "result.json"
_SHOWN_LINES, _KEPT_LINES, _SHOWN_CHARACTERS = 20, 20_000, 2_000
_SECONDS_BETWEEN_LOOKS = 0.3
# Time for the others to say why they end too, and for mpirun and its like to end their ranks.
_SECONDS_AFTER_FAILURE, _SECONDS_TO_END_RANKS = 1.0, 3.0
# Time for a rank to end while only those have ended that lost it: it may take itself apart for seconds.
_SECONDS_FOR_CAUSE = 10.0
# Time for what was printed to come, once every process is ended.
_SECONDS_FOR_REST = 2.0
# What TensorFlow, Gloo and MXNet say of an address that they cannot open.
_PORT_TAKEN = ("Could not start gRPC server", "Address already in use", "bind failed")
_ATTEMPTS = 3

ErrorOfRun = Callable[[LaunchedRun], LaunchError]


def run(launched: LaunchedProgram, make_job: Callable[[], Job], attempts: int = _ATTEMPTS) -> LaunchedRun:
    """Run a job of the program, and another one when another program has taken one of its ports meanwhile."""
    try:
        return _Supervisor(launched, make_job()).run()
    except PortTaken:
        if attempts == 1:
            raise
    if launched.echo:
        print("Another program took one of the ports meanwhile; starting again with other ports.", flush=True)
    return run(launched, make_job, attempts - 1)


class _Supervisor:
    """One run of one job."""

    def __init__(self, launched: LaunchedProgram, job: Job) -> None:
        self._launched, self._job = launched, job
        self._starter = job.commands[0].name if job.commands[0].starter else None
        self._commands: list[subprocess.Popen[str]] = []
        self._pids: dict[str, int] = {}
        self._lines: dict[str, deque[str]] = {}
        self._ended: dict[str, Ended] = {}
        self._unconnected = dict.fromkeys(job.ranks, "")

    def run(self) -> LaunchedRun:
        """Run the job to its end; raises WorkerFailed, WorkerMissing or DeadlinePassed with the run so far."""
        if self._launched.echo:
            print(self._launched.by_hand(self._job), flush=True)
        mark, begin = processes.new_mark(), time.monotonic()
        with tempfile.TemporaryDirectory(prefix="distlab-", dir=rank_process.folder_for_sockets()) as folder:
            with Reports(Path(folder, _SOCKET_NAME)) as self._reports:
                try:
                    with processes.guarded(mark, folder):
                        self._start(mark, Path(folder))
                        error_of = self._follow(begin)
                finally:
                    self._take_rest()
            names = self._names()
            run = LaunchedRun(
                {name: self._ended[name].status if name in self._ended else None for name in names},
                {name: "\n".join(self._lines.get(name, ())) for name in names},
                seconds=time.monotonic() - begin,
            )
            if error_of:
                raise error_of(run)
            run.result = self._result(run, Path(folder))
        return run

    def _names(self) -> list[str]:
        others = {*self._pids, *(command.name for command in self._job.commands)} - {*self._job.ranks}
        return [*self._job.ranks, *sorted(others)]

    def _start(self, mark: str, folder: Path) -> None:
        launched, socket_path = self._launched, str(folder / _SOCKET_NAME)
        words = launched.words(str(launched.python), Path(launched.file).resolve(), str(folder / _RESULT_NAME))
        server = rank_process.NONE
        if launched.prepared and not launched.module and str(launched.python) == sys.executable:
            environment = self._job.commands[0].whole_environment()
            server = fork_server.server_for(Path(launched.file), environment, len(self._job.ranks)) or server
        for command in self._job.commands:
            name = rank_process.RANK if command.starter else command.name
            arguments = rank_process.command(words, socket_path, name, server)
            if command.name == "horovodrun" and server != rank_process.NONE:
                # A Python program that imports TensorFlow, only to see what Horovod was built for.
                arguments = [words[0], *command.starter, *arguments]
                arguments = rank_process.command(arguments, socket_path, command.name, server)
            elif command.starter:
                arguments = rank_process.command([*command.starter, *arguments], socket_path, command.name)
            environment = command.whole_environment()
            self._commands.append(processes.start(arguments, mark, env=environment, stdin=subprocess.DEVNULL))

    def _result(self, run: LaunchedRun, folder: Path) -> object:
        """What the program wrote as JSON to the file of its result, if its path is among the arguments."""
        if not self._launched.result and RESULT not in "".join(map(str, self._launched.arguments)):
            return None
        if not (file := folder / _RESULT_NAME).exists():
            raise LaunchError(
                f"{self._launched.file} finished without an error but wrote no result file: the program must take the "
                "option --result FILE, which result=True adds, and one of its processes must write JSON there.",
                run,
            )
        return json.loads(file.read_text(encoding="utf-8"))

    def _follow(self, begin: float) -> ErrorOfRun | None:
        """Take events until the job is over; None if it went well, else what makes the error of the run."""
        next_look, failed_at = begin, None
        while True:
            now = time.monotonic()
            if failures := self._failures():
                failed_at = failed_at or now
                all_ended = self._ended.keys() >= {*self._job.ranks, *self._job.decisive}
                if all_ended or now - failed_at > self._patience(failures[0][0]):
                    return self._failure
            elif self._ended.keys() >= {*self._job.decisive}:
                return None
            elif now - begin > self._launched.seconds:
                return self._late
            elif self._unconnected and now >= next_look:
                found = {name: self._why_unconnected(name) for name in self._unconnected}
                self._unconnected = {name: why for name, why in found.items() if why}
                if self._unconnected and now - begin > self._launched.start_seconds:
                    return self._missing
                next_look = now + _SECONDS_BETWEEN_LOOKS
            self._take_event()

    def _take_event(self) -> None:
        """Take what is reported next, if that is soon."""
        try:
            event = self._reports.events.get(timeout=0.05)
        except queue.Empty:
            return
        match event:
            case Started(name, pid):
                self._pids[name] = pid
                self._ended.pop(name, None)  # Horovod Elastic may start a rank again under its number
            case Line(name, text):
                self._lines.setdefault(name, deque(maxlen=_KEPT_LINES)).append(text)
                is_over = any(end.status == 0 for end in self._ended.values())
                if self._launched.echo and not (is_over and LEFT_WORKER.match(text)):
                    print(f"[{name}] {text}", flush=True)
            case Ended(name):
                self._ended[name] = event

    def _take_rest(self) -> None:
        """Take what was printed until the processes ended; how they were ended does not count."""
        ended, deadline = dict(self._ended), time.monotonic() + _SECONDS_FOR_REST
        while self._pids.keys() - self._ended.keys() and time.monotonic() < deadline:
            self._take_event()
        self._ended = ended
        for process in self._commands:
            process.wait()

    def _failures(self) -> list[tuple[Cause, Ended]]:
        may_fail = {*self._pids} - {*self._job.decisive} if self._job.ranks_may_fail else ()
        failed = [end for end in self._ended.values() if end.status != 0 and end.name not in may_fail]
        return in_order(failed, self._lines, self._starter) if failed else []

    def _patience(self, cause: Cause) -> float:
        """For how many seconds after the first failure the others may still end."""
        # What has started ranks fails because of one of them, whose own end may be told later; or before any has begun.
        if cause is Cause.OWN or (cause is Cause.LOST_RANK and not self._pids.keys() - {self._starter}):
            return _SECONDS_TO_END_RANKS if self._starter else _SECONDS_AFTER_FAILURE
        return _SECONDS_FOR_CAUSE

    def _why_unconnected(self, name: str) -> str | None:
        """What a rank that has not connected lacks; None if it has."""
        end = self._ended.get(name)
        if address := self._job.addresses.get(name):
            if is_open(address):
                return None
            why = f"nobody listens at {address}"
        elif pid := self._pids.get(name):
            if end and end.status == 0:
                return None
            with suppress(psutil.Error):
                process = psutil.Process(pid)
                if any(each.net_connections("inet") for each in [process, *process.children(recursive=True)]):
                    return None
            why = f"process {pid} on {HOST} has no connection"
        else:
            why = f"never started on {HOST}"
        return why + (f", it has ended with exit code {end.status}" if end else "")

    def _failure(self, run: LaunchedRun) -> WorkerFailed:
        first, *others = [end for _, end in self._failures()]
        run.exit_codes[first.name] = status = first.status
        end = "vanished" if status is None else f"was killed by signal {-status}" if status < 0 else "failed"
        later = ", ".join(f"{other.name} (exit code {other.status})" for other in others)
        headline = f"{first.name} {end}, exit code {status}; the job was ended."
        headline += f" After it ended: {later}." if later else ""
        # A port that the program itself opens after it has connected does not start the job again. The job's own
        # processes have ended: whoever listens now at one of its addresses is another program.
        said = "\n".join(run.output[failed.name] for failed in [first, *others])
        addresses = self._job.addresses.values()
        others_listen = addresses and (self._unconnected or any(map(is_open, addresses)))
        kind = PortTaken if others_listen and any(sign in said for sign in _PORT_TAKEN) else WorkerFailed
        return kind(first.name, status, headline + self._last_lines([first.name]), run)

    def _late(self, run: LaunchedRun) -> DeadlinePassed:
        running = [name for name in self._names() if name not in {*self._ended, self._starter}] or self._job.decisive
        return DeadlinePassed(
            f"The job was not over after {self._launched.seconds:g} s and was ended; "
            f"still running: {', '.join(running)}. Give it more time (`seconds=`, or --seconds on the command line), "
            "or find out what it waits for." + self._last_lines(running),
            run,
        )

    def _missing(self, run: LaunchedRun) -> WorkerMissing:
        missing = [f"{name} ({why})" for name, why in self._unconnected.items()]
        connected = [name for name in self._job.ranks if name not in self._unconnected]
        waiting = f"; waiting for it: {', '.join(connected)}" if connected else ""
        message = (
            f"Within {self._launched.start_seconds:g} s these ranks did not connect: {', '.join(missing)}{waiting}. "
            "See what the program does there before it makes its strategy or initialises Horovod or MPI."
        )
        return WorkerMissing([*self._unconnected], message + self._last_lines(self._unconnected), run)

    def _last_lines(self, names: Iterable[str]) -> str:
        text = ""
        for name in names:
            lines = list(self._lines.get(name, ()))[-_SHOWN_LINES:]
            text += f"\nThe last lines of {name}:" if lines else ""
            text += "".join(f"\n    {line[-_SHOWN_CHARACTERS:]}" for line in lines)
        return text
