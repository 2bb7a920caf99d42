"""Runs a job: starts it, shows its output line by line, watches its deadlines, and leaves no process behind."""

import json
import queue
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

import psutil

from distlab.launch import fork_server, rank_process
from distlab.launch.first_failure import Cause, in_order, notes_left_worker
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
from distlab.launch.reports import Ended, Event, Line, RankStarted, Reports
from distlab.runtime import processes

_SOCKET_NAME, _RESULT_NAME = "ranks", "result.json"
_SHOWN_LINES, _KEPT_LINES, _SHOWN_CHARACTERS = 20, 20_000, 2_000
_SECONDS_BETWEEN_LOOKS = 0.3
# Time for the others to say why they end too, and for mpirun and its like to end their ranks.
_SECONDS_AFTER_FAILURE, _SECONDS_TO_END_RANKS = 1.0, 3.0
# Time for a rank to end while only those have ended that lost it: it may take itself apart for seconds.
_SECONDS_FOR_CAUSE = 10.0
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
        self._reports = Reports()
        self._lines: dict[str, deque[str]] = {}
        self._ended: dict[str, int | None] = {}
        self._failed: list[Ended] = []
        self._pids: dict[str, int] = {}
        self._unconnected = list(job.ranks)

    def run(self) -> LaunchedRun:
        """Run the job to its end; raises WorkerFailed, WorkerMissing or DeadlinePassed with the run so far."""
        if self._launched.echo:
            print(self._launched.by_hand(self._job), flush=True)
        mark, begin = processes.new_mark(), time.monotonic()
        with tempfile.TemporaryDirectory(prefix="distlab-", dir=rank_process.folder_for_sockets()) as folder:
            with ExitStack() as stack:
                stack.callback(self._take_rest)
                stack.enter_context(processes.guarded(mark, folder))
                self._start(mark, Path(folder))
                error_of = self._follow(begin)
            names = self._names()
            run = LaunchedRun(
                {name: self._ended.get(name) for name in names},
                {name: "\n".join(self._lines.get(name, ())) for name in names},
                seconds=time.monotonic() - begin,
            )
            if error_of:
                raise error_of(run)
            run.result = self._result(run, Path(folder))
        return run

    def _names(self) -> list[str]:
        # A single command that starts the ranks is worth mentioning only if it prints something.
        started = {command.name for command in self._job.commands} if len(self._job.commands) > 1 else set()
        return [*self._job.ranks, *sorted({*self._lines, *self._ended, *started} - {*self._job.ranks})]

    def _start(self, mark: str, folder: Path) -> None:
        launched, socket_path = self._launched, "-"
        words = launched.words(str(launched.python), Path(launched.file).resolve(), str(folder / _RESULT_NAME))
        server = None
        if launched.prepared and not launched.module and str(launched.python) == sys.executable:
            environment = self._job.commands[0].whole_environment()
            server = fork_server.server_for(Path(launched.file), environment, len(self._job.ranks))
        if self._starter:
            socket_path = str(folder / _SOCKET_NAME)
            self._reports.listen(Path(socket_path))
        for command in self._job.commands:
            arguments = [*command.starter, *rank_process.command(socket_path, words, server)]
            if server and command.name == "horovodrun":
                # A Python program that imports TensorFlow, only to see what Horovod was built for.
                arguments = rank_process.command("-", [words[0], *arguments], server)
            process = processes.start(
                arguments,
                mark,
                env=command.whole_environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                errors="replace",
            )
            self._reports.follow(command.name, process)

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
            if all(name in self._ended for name in self._job.decisive) and not self._failed:
                return None
            if self._failed:
                failed_at = failed_at or now
                all_ended = all(name in self._ended for name in [*self._job.ranks, *self._job.decisive])
                if all_ended or now - failed_at > self._patience():
                    return self._failure
            elif now - begin > self._launched.seconds:
                return self._late
            elif self._unconnected and now >= next_look:
                self._unconnected = [name for name in self._unconnected if not self._has_connected(name)]
                if self._unconnected and now - begin > self._launched.start_seconds:
                    return self._missing
                next_look = now + _SECONDS_BETWEEN_LOOKS
            with suppress(queue.Empty):
                self._take(self._reports.events.get(timeout=0.05))

    def _take(self, event: Event) -> None:
        match event:
            case Line(name, text):
                self._lines.setdefault(name, deque(maxlen=_KEPT_LINES)).append(text)
                if self._launched.echo and not (0 in self._ended.values() and notes_left_worker(text)):
                    print(f"[{name}] {text}", flush=True)
            case RankStarted(name, pid):
                self._pids[name] = pid
                self._ended.pop(name, None)  # Horovod Elastic may start a rank again under its number
            case Ended(name, status):
                self._ended[name] = status
                may_fail = self._job.ranks_may_fail and name not in self._job.decisive
                if status != 0 and not may_fail:
                    self._failed.append(event)

    def _take_rest(self) -> None:
        """Take what was printed until the processes ended; their ends are ignored."""
        for event in self._reports.rest():
            if isinstance(event, Line):
                self._take(event)

    def _patience(self) -> float:
        """For how many seconds after the first failure the others may still end."""
        cause, _ = self._failures()[0]
        # What has started ranks fails because of one of them, whose own end may be told later; or before any has begun.
        if cause is Cause.OWN or (cause is Cause.LOST_RANK and not self._pids):
            return _SECONDS_TO_END_RANKS if self._starter else _SECONDS_AFTER_FAILURE
        return _SECONDS_FOR_CAUSE

    def _failures(self) -> list[tuple[Cause, Ended]]:
        return in_order(self._failed, self._lines, self._starter)

    def _has_connected(self, name: str) -> bool:
        if name in self._job.addresses:
            return is_open(self._job.addresses[name])
        if self._ended.get(name) == 0:
            return True
        with suppress(KeyError, psutil.Error):
            process = psutil.Process(self._pids[name])
            return any(each.net_connections("inet") for each in [process, *process.children(recursive=True)])
        return False

    def _failure(self, run: LaunchedRun) -> WorkerFailed:
        first, *others = [end for _, end in self._failures()]
        run.exit_codes[first.name] = status = first.status
        end = "vanished" if status is None else f"was killed by signal {-status}" if status < 0 else "failed"
        later = ", ".join(f"{other.name} (exit code {other.status})" for other in others)
        headline = f"{first.name} {end}, exit code {status}; the job was ended."
        headline += f" After it ended: {later}." if later else ""
        # A port that the program itself opens after it has connected does not start the job again. The job's own
        # processes have ended: whoever listens now at one of its addresses is another program.
        said = "\n".join(run.output[failed.name] for failed in self._failed)
        addresses = self._job.addresses.values()
        others_listen = addresses and (self._unconnected or any(map(is_open, addresses)))
        kind = PortTaken if others_listen and any(sign in said for sign in _PORT_TAKEN) else WorkerFailed
        return kind(first.name, status, headline + self._last_lines([first.name]), run)

    def _late(self, run: LaunchedRun) -> DeadlinePassed:
        running = [name for name in self._names() if name not in self._ended] or self._job.decisive
        return DeadlinePassed(
            f"The job was not over after {self._launched.seconds:g} s and was ended; "
            f"still running: {', '.join(running)}. Give it more time (`seconds=`, or --seconds on the command line), "
            "or find out what it waits for." + self._last_lines(running),
            run,
        )

    def _missing(self, run: LaunchedRun) -> WorkerMissing:
        missing = [f"{name} ({self._place(name)})" for name in self._unconnected]
        connected = [name for name in self._job.ranks if name not in self._unconnected]
        waiting = f"; waiting for it: {', '.join(connected)}" if connected else ""
        message = (
            f"Within {self._launched.start_seconds:g} s these ranks did not connect: {', '.join(missing)}{waiting}. "
            "See what the program does there before it makes its strategy or initialises Horovod or MPI."
        )
        return WorkerMissing(self._unconnected, message + self._last_lines(self._unconnected), run)

    def _place(self, name: str) -> str:
        if name in self._job.addresses:
            place = f"nobody listens at {self._job.addresses[name]}"
        elif name in self._pids:
            place = f"process {self._pids[name]} on {HOST} has no connection"
        else:
            place = f"never started on {HOST}"
        return place + (f", it has ended with exit code {self._ended[name]}" if name in self._ended else "")

    def _last_lines(self, names: Sequence[str]) -> str:
        text = ""
        for name in names:
            lines = list(self._lines.get(name, ()))[-_SHOWN_LINES:]
            text += f"\nThe last lines of {name}:" if lines else ""
            text += "".join(f"\n    {line[-_SHOWN_CHARACTERS:]}" for line in lines)
        return text
