"""Runs a job: starts it, shows its output line by line, watches its deadlines, and leaves no process behind."""

import queue
import subprocess
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

import psutil

from distlab.launch import rank_process
from distlab.launch.first_failure import Cause, in_order, notes_left_worker
from distlab.launch.job import (
    HOST,
    DeadlinePassed,
    Job,
    LaunchedRun,
    LaunchError,
    PortTaken,
    WorkerFailed,
    WorkerMissing,
    is_open,
)
from distlab.launch.reports import Ended, Event, Line, RankStarted, Reports
from distlab.runtime import processes

_SOCKET_NAME = "ranks"
_SHOWN_LINES, _KEPT_LINES, _SHOWN_CHARACTERS = 20, 20_000, 2_000
_SECONDS_BETWEEN_LOOKS = 0.3
# Time for the others to say why they end too, and for mpirun and its like to end their ranks.
_SECONDS_AFTER_FAILURE, _SECONDS_TO_END_RANKS = 1.0, 3.0
# Time for a rank to end while only those have ended that lost it: it may take itself apart for seconds.
_SECONDS_FOR_CAUSE = 10.0
# What TensorFlow, Gloo and MXNet say of an address that they cannot open.
_PORT_TAKEN = ("Could not start gRPC server", "Address already in use", "bind failed")

ErrorOfRun = Callable[[LaunchedRun], LaunchError]


class Supervisor:
    """One run of one job."""

    def __init__(self, job: Job, show: Callable[[str], None], folder: Path, server: str | None = None) -> None:
        """`show` gets each line to print, in the thread that calls `run`; `folder` is for temporary files.

        server: the path of a fork server that runs the programs.
        """
        self._job, self._show, self._folder, self._server = job, show, folder, server
        self._starter = job.commands[0].name if job.commands[0].starter else None
        self._reports = Reports()
        self._lines: dict[str, deque[str]] = {}
        self._ended: dict[str, int | None] = {}
        self._failed: list[Ended] = []
        self._pids: dict[str, int] = {}
        self._unconnected = list(job.ranks)

    def run(self) -> LaunchedRun:
        """Run the job to its end; raises WorkerFailed, WorkerMissing or DeadlinePassed with the run so far."""
        mark, begin = processes.new_mark(), time.monotonic()
        with ExitStack() as stack:
            stack.callback(self._take_rest)
            stack.enter_context(processes.guarded(mark, self._folder))
            self._start(mark)
            error_of = self._follow(begin)
        names = self._names()
        run = LaunchedRun(
            {name: self._ended.get(name) for name in names},
            {name: "\n".join(self._lines.get(name, ())) for name in names},
            seconds=time.monotonic() - begin,
        )
        if error_of:
            raise error_of(run)
        return run

    def _names(self) -> list[str]:
        # A single command that starts the ranks is worth mentioning only if it prints something.
        started = {command.name for command in self._job.commands} if len(self._job.commands) > 1 else set()
        return [*self._job.ranks, *sorted({*self._lines, *self._ended, *started} - {*self._job.ranks})]

    def _start(self, mark: str) -> None:
        socket_path = str(self._folder / _SOCKET_NAME)
        if self._starter:
            self._reports.listen(Path(socket_path))
        for command in self._job.commands:
            program = rank_process.command(socket_path if command.starter else "-", self._job.program, self._server)
            arguments = [*command.starter, *program]
            if self._server and command.name == "horovodrun":
                # A Python program that imports TensorFlow, only to see what Horovod was built for.
                arguments = rank_process.command("-", [self._job.program[0], *arguments], self._server)
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
            elif now - begin > self._job.seconds:
                return self._late
            elif self._unconnected and now >= next_look:
                self._unconnected = [name for name in self._unconnected if not self._has_connected(name)]
                if self._unconnected and now - begin > self._job.start_seconds:
                    return self._missing
                next_look = now + _SECONDS_BETWEEN_LOOKS
            with suppress(queue.Empty):
                self._take(self._reports.events.get(timeout=0.05))

    def _take(self, event: Event) -> None:
        match event:
            case Line(name, text):
                self._lines.setdefault(name, deque(maxlen=_KEPT_LINES)).append(text)
                if not (0 in self._ended.values() and notes_left_worker(text)):
                    self._show(f"[{name}] {text}")
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
        cause, first = self._failures()[0]
        # What has started ranks fails because of one of them, whose own end may be told later.
        is_due_to_rank = first.name == self._starter and bool(self._pids)
        if is_due_to_rank or cause is not Cause.OWN:
            return _SECONDS_FOR_CAUSE
        return _SECONDS_TO_END_RANKS if self._starter else _SECONDS_AFTER_FAILURE

    def _failures(self) -> list[tuple[Cause, Ended]]:
        return in_order(self._failed, {name: list(lines) for name, lines in self._lines.items()}, self._starter)

    def _has_connected(self, name: str) -> bool:
        if name in self._job.addresses:
            return is_open(self._job.addresses[name])
        if self._ended.get(name) == 0:
            return True
        with suppress(KeyError, psutil.Error):
            process = psutil.Process(self._pids[name])
            return any(map(processes.has_connection, [process, *process.children(recursive=True)]))
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
        others_listen = bool(self._unconnected) or any(map(is_open, self._job.addresses.values()))
        is_port_taken = others_listen and any(sign in said for sign in _PORT_TAKEN)
        kind = PortTaken if is_port_taken else WorkerFailed
        return kind(first.name, status, headline + self._last_lines([first.name]), run)

    def _late(self, run: LaunchedRun) -> DeadlinePassed:
        running = [name for name in self._names() if name not in self._ended] or self._job.decisive
        return DeadlinePassed(
            f"The job was not over after {self._job.seconds:g} s and was ended; still running: {', '.join(running)}. "
            "Give it more time (`seconds=`, or --seconds on the command line), or find out what it waits for."
            + self._last_lines(running),
            run,
        )

    def _missing(self, run: LaunchedRun) -> WorkerMissing:
        missing = [f"{name} ({self._place(name)})" for name in self._unconnected]
        connected = [name for name in self._job.ranks if name not in self._unconnected]
        waiting = f"; waiting for it: {', '.join(connected)}" if connected else ""
        message = (
            f"Within {self._job.start_seconds:g} s these ranks did not connect: {', '.join(missing)}{waiting}. "
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
