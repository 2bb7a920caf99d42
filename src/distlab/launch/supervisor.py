"""Runs a job: starts it, shows its output line by line, watches its deadlines, and leaves no process behind."""

import queue
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from enum import Enum, auto
from pathlib import Path

from distlab.launch import first_failure, rank_process
from distlab.launch.job import (
    HOST,
    LAST_LINES,
    DeadlinePassed,
    Job,
    LaunchedRun,
    LaunchError,
    Limits,
    PortTaken,
    WorkerFailed,
    WorkerMissing,
)
from distlab.launch.last_lines import LastLines, cut, last_error, without_frames_of_starter
from distlab.launch.ports import is_open
from distlab.launch.rank_process import SOCKET, SOCKET_NAME
from distlab.launch.reports import Ended, Event, Line, RankStarted, Reports
from distlab.runtime import errors, processes
from distlab.runtime.own_time import WatchedClock

_SECONDS_BETWEEN_LOOKS = 0.3
# Time for the others to say why they end too, and for mpirun and its like to end their ranks.
_SECONDS_AFTER_FAILURE, _SECONDS_TO_END_RANKS = 1.0, 3.0
# Time for a rank to end while only those have ended that lost it: it may take itself apart for seconds.
_SECONDS_FOR_CAUSE = 10.0
# What TensorFlow says of the address that it cannot open.
_PORT_OF_TENSORFLOW = re.compile(r"Failed to add port to server: .*:(\d+)'")
_PORT_TAKEN = (errors.NO_SERVER, "Address already in use", "bind failed")  # TensorFlow, Gloo, MXNet


class _Verdict(Enum):
    DONE = auto()
    FAILED = auto()
    MISSING = auto()
    LATE = auto()


class Supervisor:
    """One run of one job."""

    def __init__(self, job: Job, limits: Limits, show: Callable[[str], None], folder: Path) -> None:
        """`show` gets each line to print, in the thread that calls `run`; `folder` is for temporary files."""
        self._job, self._limits, self._show, self._folder = job, limits, show, folder
        self._reports = Reports()
        self._lines: dict[str, LastLines] = {}
        self._ended: dict[str, int | None] = {}
        self._failed: list[Ended] = []
        self._pids: dict[str, int] = {}
        self._marks: dict[str, str] = {}
        self._unconnected = list(job.ranks)

    def run(self) -> LaunchedRun:
        """Run the job to its end; raises WorkerFailed, WorkerMissing or DeadlinePassed with the run so far."""
        mark = processes.new_mark()
        clock = WatchedClock()  # while this process is stopped, as by Ctrl-Z, no limit passes
        begin = clock.now()
        with ExitStack() as stack:
            stack.callback(self._take_rest)
            stack.enter_context(processes.guarded(mark, self._folder))
            self._start(mark)
            verdict = self._follow(clock, begin)
        run = LaunchedRun(
            {name: self._ended.get(name) for name in self._names()},
            {name: "\n".join(self._lines.get(name, ())) for name in self._names()},
            seconds=clock.now() - begin,
        )
        if verdict is not _Verdict.DONE:
            raise self._error(verdict, run)
        return run

    def _names(self) -> list[str]:
        # A single command that starts the ranks is worth mentioning only if it prints something.
        started = {command.name for command in self._job.commands} if len(self._job.commands) > 1 else set()
        return [*self._job.ranks, *sorted({*self._lines, *self._ended, *started} - {*self._job.ranks})]

    def _start(self, mark: str) -> None:
        socket_path = self._folder / SOCKET_NAME
        if not self._job.addresses:
            self._reports.listen(socket_path)
        for command in self._job.commands:
            arguments = [argument.replace(SOCKET, str(socket_path)) for argument in command.arguments]
            if SOCKET not in command.arguments:
                arguments = [sys.executable, "-I", "-S", rank_process.__file__, "-", *arguments]
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

    def _follow(self, clock: WatchedClock, begin: float) -> _Verdict:
        """Take events until the job is over, one way or another."""
        next_look, failed_at = begin, None
        while True:
            now = clock.now()
            if all(name in self._ended for name in self._job.decisive) and not self._failed:
                return _Verdict.DONE
            if self._failed:
                failed_at = failed_at or now
                if self._all_ended() or now - failed_at > self._patience():
                    return _Verdict.FAILED
            elif now - begin > self._limits.seconds:
                return _Verdict.LATE
            elif self._unconnected and now >= next_look:
                self._unconnected = [name for name in self._unconnected if not self._has_connected(name)]
                if self._unconnected and now - begin > self._limits.start_seconds:
                    return _Verdict.MISSING
                next_look = now + _SECONDS_BETWEEN_LOOKS
            with suppress(queue.Empty):
                self._take(self._reports.events.get(timeout=0.05))

    def _patience(self) -> float:
        """For how many seconds after the first failure the others may still end."""
        first = self._failures()[0]
        # What has started ranks fails because of one of them, whose own end may be told later.
        is_due_to_rank = first.name not in self._job.ranks and bool(self._pids)
        if is_due_to_rank or not first_failure.is_own(first, self._lines):
            return _SECONDS_FOR_CAUSE
        return _SECONDS_AFTER_FAILURE if self._job.addresses else _SECONDS_TO_END_RANKS

    def _failures(self) -> list[Ended]:
        """The failures, the first of them first; a command that starts ranks fails because one of them did."""
        ends = first_failure.in_order(self._failed, self._lines, self._job.decisive[0])
        return sorted(ends, key=lambda end: end.name not in self._job.ranks)

    def _with_code(self, end: Ended) -> str:
        return f"{end.name} (exit code {end.status})"

    def _all_ended(self) -> bool:
        return all(name in self._ended for name in [*self._job.ranks, *self._job.decisive])

    def _take(self, event: Event) -> None:
        match event:
            case Line(name, text):
                self._lines.setdefault(name, LastLines()).append(text)
                if not (0 in self._ended.values() and first_failure.notes_left_worker(text)):
                    self._show(f"[{name}] {text}")
            case RankStarted(name, pid, mark):
                self._pids[name], self._marks[name] = pid, mark
                self._ended.pop(name, None)
            case Ended(name, status):
                self._ended[name] = status
                is_rank_of_another = self._job.ranks_may_fail and name not in self._job.decisive
                if status != 0 and not is_rank_of_another:
                    self._failed.append(event)

    def _take_rest(self) -> None:
        """Take what was printed until the processes ended; their ends are ignored."""
        for event in self._reports.rest():
            if isinstance(event, Line):
                self._take(event)

    def _has_connected(self, name: str) -> bool:
        if name in self._job.addresses:
            return is_open(self._job.addresses[name])
        if self._ended.get(name) == 0:
            return True
        return name in self._marks and any(map(processes.has_connection, processes.alive(self._marks[name])))

    def _error(self, verdict: _Verdict, run: LaunchedRun) -> LaunchError:
        if verdict is _Verdict.FAILED:
            return self._failure(run)
        if verdict is _Verdict.MISSING:
            return self._missing(run)
        running = [name for name in self._names() if name not in self._ended] or self._job.decisive
        return DeadlinePassed(
            f"The job was not over after {self._limits.seconds:g} s and was ended; still running: "
            f"{', '.join(running)}. Give it more time (`seconds=`, or --seconds on the command line), "
            f"or find out what it waits for." + "".join(self._last_lines(name) for name in running),
            run,
        )

    def _failure(self, run: LaunchedRun) -> WorkerFailed:
        failures = self._failures()
        name, status = failures[0].name, failures[0].status
        run.exit_codes[name] = status
        end = "vanished" if status is None else f"was killed by signal {-status}" if status < 0 else "failed"
        if name not in self._job.ranks and not self._pids and (reason := last_error(self._lines.get(name, ()))):
            return WorkerFailed(name, status, f"{name} could not start the ranks: {reason}.", run)
        left = first_failure.left_without_finalize(run.output.get(self._job.decisive[0], ""))
        if left and self._ended.get(left) == 0:
            name, status, end = left, 0, "ended without MPI_Finalize"
        later = [self._with_code(failure) for failure in failures if failure.name != name]
        after = f" After it ended: {', '.join(later)}." if later else ""
        ranks = self._job.ranks if name in self._job.ranks and name != left else ()
        early = [rank for rank in ranks if self._ended.get(rank) == 0]
        happened = f"{name} {end}, exit code {status}"
        headline = first_failure.after_good_ends(failures[0], happened, self._lines, early)
        said = "\n".join(run.output[failure.name] for failure in failures)
        own_ports = {address.rpartition(":")[2] for address in self._job.addresses.values()}
        other_ports = sorted({*_PORT_OF_TENSORFLOW.findall(said)} - own_ports) if own_ports else []
        if other_ports:
            after += (
                f" It could not open port {other_ports[0]}, which is not in the TF_CONFIG that the launcher gave it: "
                "the program sets TF_CONFIG itself; remove that."
            )
        # A program may find a port of its own taken, after it has trained: that does not start the job again.
        may_be_ours = not other_ports and any(sign in said for sign in _PORT_TAKEN)
        was_taken = may_be_ours and (
            bool(self._unconnected)
            or any(port in said for port in own_ports)
            or any(map(is_open, self._job.addresses.values()))  # the job's own processes have ended
        )
        return (PortTaken if was_taken else WorkerFailed)(name, status, headline + after + self._last_lines(name), run)

    def _missing(self, run: LaunchedRun) -> WorkerMissing:
        missing = [f"{name} ({self._place(name)})" for name in self._unconnected]
        connected = [name for name in self._job.ranks if name not in self._unconnected]
        waiting = f"; waiting for it: {', '.join(connected)}" if connected else ""
        message = (
            f"Within {self._limits.start_seconds:g} s these ranks did not connect: {', '.join(missing)}{waiting}. "
            "See what the program does there before it makes its strategy or initialises Horovod or MPI."
        )
        return WorkerMissing(
            self._unconnected, message + "".join(self._last_lines(name) for name in self._unconnected), run
        )

    def _place(self, name: str) -> str:
        if name in self._job.addresses:
            place = f"nobody listens at {self._job.addresses[name]}"
        elif name in self._pids:
            place = f"process {self._pids[name]} on {HOST} has no connection"
        else:
            place = f"never started on {HOST}"
        return place + (f", it has ended with exit code {self._ended[name]}" if name in self._ended else "")

    def _last_lines(self, name: str) -> str:
        lines = without_frames_of_starter(self._lines.get(name, ()))[-LAST_LINES:]
        return f"\nThe last lines of {name}:\n" + "\n".join(f"    {cut(line)}" for line in lines) if lines else ""
