"""The processes between the grader and students' code: `python -m distlab.sandbox.fork_server FD SCRATCH MODULE…`.

The server has imported what students' code will import, so that a sandbox is ready in milliseconds, and knows nothing
else. For each sandbox it forks a keeper, which stays outside and ends it: when the grader asks, when the grader has
ended, when the sandbox passes a limit.
"""

import gc
import importlib
import json
import os
import resource
import select
import shutil
import signal
import socket
import stat
import sys
import tempfile
import time
import warnings
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from distlab.sandbox import confine, student, system_call_filter, system_calls
from distlab.sandbox.confine import MIB, Confinement, SandboxLimits
from distlab.sandbox.meter import ENDED, Meter, Use

_SECONDS_BETWEEN_LOOKS = 0.05
_OBJECTS_BETWEEN_COLLECTIONS = 20_000  # some megabytes, where Python itself would wait for 700
_LOOKS_OF_OTHER_KEEPERS = 10
_LONGEST_ORDER = 65536
_TICKS = os.sysconf("SC_CLK_TCK")


def main(arguments: list[str]) -> None:
    """Import the modules and serve."""
    descriptor, scratch, *modules = arguments
    warnings.simplefilter("ignore", DeprecationWarning)  # we mean to fork although TensorFlow has idle threads
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))  # the grader's own limit is not the students'
    gc.disable()  # what imports make stays: the collector would search it again and again for nothing
    for module in modules:
        with suppress(Exception):  # code that needs it will see why it cannot be imported
            importlib.import_module(module)
    gc.collect()
    gc.freeze()  # the collector of a forked process leaves these objects, and so their memory pages, alone
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)  # with few objects left to it, it would look at them too often
    gc.enable()
    serve(socket.socket(fileno=int(descriptor)), scratch)
    shutil.rmtree(scratch, ignore_errors=True)  # the grader may have been killed


def serve(connection: socket.socket, scratch: str) -> None:
    """Fork a keeper for each order, until the other end is closed and all keepers have ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        message, descriptors, _, _ = socket.recv_fds(connection, _LONGEST_ORDER, 3)
        if not message:
            break
        order = json.loads(message)
        if os.fork() == 0:
            connection.close()
            data, control = (socket.socket(fileno=number) for number in descriptors[:2])
            confinement = Confinement(SandboxLimits(**order["limits"]), order["weak"], tuple(order["hidden"]))
            keep(data, control, Gauge(Meter(descriptors[2]), order["number"]), confinement, scratch)
        for number in descriptors:
            os.close(number)
    with suppress(ChildProcessError):
        os.wait()  # whose children are ignored waits for all of them


def keep(data: socket.socket, control: socket.socket, gauge: "Gauge", confinement: Confinement, scratch: str) -> None:
    """Start a student's process and watch it; ends this process. Why it ended goes to `control`, as JSON."""
    status = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        if sys.platform == "linux":
            system_calls.adopt_orphans()
        folder = tempfile.mkdtemp(dir=scratch) if confinement.weak else scratch
        first = _started(data, confinement, folder)
        data.close()
        has_ended = False
        try:
            reason, has_ended = _watch(first, control, gauge, confinement.limits)
        finally:
            _end(None if has_ended else first, confinement.weak)
            gauge.end()
        _tell(control, reason)
        status = 0
    except BaseException as error:
        _tell(control, f"the sandbox could not be kept: {type(error).__name__}: {error}")
    finally:
        os._exit(status)


def _started(data: socket.socket, confinement: Confinement, folder: str) -> int:
    """The process number, as seen from here, of the first process in the sandbox. Raises RuntimeError."""
    reading, writing = os.pipe()
    waiting, go = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        os.close(go)
        _set_up(data, confinement, folder, writing, waiting)
    os.close(writing)
    os.close(waiting)
    with os.fdopen(reading) as report:
        lines = report.read().splitlines()
    if not confinement.weak:
        os.waitpid(child, 0)
    number = child if confinement.weak else next((int(line) for line in lines if line.isdigit()), 0)
    problems = [line for line in lines if not line.isdigit()]
    if problems or not number:
        raise RuntimeError("; ".join(problems) or "it did not start")
    os.write(go, b"+")
    os.close(go)
    return number


def _set_up(data: socket.socket, confinement: Confinement, folder: str, report: int, waiting: int) -> None:
    """In a process between keeper and student: make the namespaces, fork the student's process into them."""
    try:
        if confinement.weak:
            os.setsid()
            confine.limit_only(folder, confinement.limits)
        else:
            user = confine.leave_namespaces()
            child = os.fork()
            if child:
                os.write(report, f"{child}\n".encode())
                os._exit(0)
            os.setsid()
            confine.shut_in(folder, confinement, user)
        system_call_filter.refuse()
    except BaseException as error:
        os.write(report, f"{type(error).__name__}: {error}\n".encode())
        os._exit(1)
    os.close(report)
    if os.read(waiting, 1) != b"+":  # the keeper has ended
        os._exit(1)
    if sys.platform == "linux":
        system_calls.end_with_parent()  # now that the keeper is the parent
    student.live(data, confinement.limits)


def _watch(first: int, control: socket.socket, gauge: "Gauge", limits: SandboxLimits) -> tuple[str, bool]:
    """Wait until the sandbox is to end or has ended; returns the reason, "" when asked, and whether it has ended."""
    watched: list[socket.socket | int] = [control, *_end_of(first)]
    while True:
        ready, _, _ = select.select(watched, [], [], _SECONDS_BETWEEN_LOOKS)
        ended, status = os.waitpid(first, os.WNOHANG)
        if ended and (os.WIFEXITED(status) or os.WIFSIGNALED(status)):  # not stopped, which a traced process reports
            return _how_it_ended(status), True
        if control in ready:
            return "", False
        if (reason := gauge.look(first, limits)) is not None:
            return reason, False


def _end(first: int | None, weak: bool) -> None:
    """Leave nothing of the sandbox; `first` is None if that process has ended."""
    if first is not None:
        os.kill(first, signal.SIGKILL)
        os.waitpid(first, 0)
    _end_descendants(weak)


def _end_of(process: int) -> list[int]:
    """What can be waited for until the process ends; nothing where the system has no such thing."""
    return [os.pidfd_open(process)] if hasattr(os, "pidfd_open") else []


class Gauge:
    """A keeper's looks at its sandbox, and what it writes into the student's meter."""

    def __init__(self, meter: Meter, number: int) -> None:
        """Sandbox `number` of the meter."""
        self._meter, self._number = meter, number
        self._processor = self._stalled = 0.0
        self._stalled_by_thread: dict[str, float] = {}
        self._looked = time.monotonic()
        self._looks_above_limit = 0

    def look(self, first: int, limits: SandboxLimits) -> str | None:
        """Write down what the sandbox of the process `first` uses; the reason if it is to end."""
        states = {process: state for process in _processes(first) if (state := _state(process)) is not None}
        alive = [process for process, state in states.items() if state.letter not in "ZX"]
        now = time.monotonic()
        self._processor = max(self._processor, sum(state.processor for state in states.values()))
        self._stalled += min(self._stalled_since(alive), now - self._looked)
        self._looked = now
        sizes = {process: _memory(process) for process in alive}
        nameless = _memory_in_nameless_files(sizes)
        used = sum(map(sum, sizes.values())) + nameless
        others = sum(use.memory for number, use in enumerate(self._meter.read()) if number != self._number)
        # What forked processes share is in the size of each: only if that is too much is it worth the longer look.
        if used + others > limits.memory:
            used = (
                sum(_own_share_of_memory(process, size.resident) + size.page_tables for process, size in sizes.items())
                + nameless
            )
        self._meter.write(self._number, Use(used, self._processor, self._stalled, now))
        # The other keepers take the longer look too, but not at the same moment.
        self._looks_above_limit = self._looks_above_limit + 1 if used + others > limits.memory else 0
        if len(alive) > limits.processes:
            return f"it started more than {limits.processes} processes"
        if used > limits.memory or self._looks_above_limit >= _LOOKS_OF_OTHER_KEEPERS:
            return f"it used more than {limits.memory // MIB} MiB of memory"
        return None

    def end(self) -> None:
        """The sandbox uses nothing more."""
        self._meter.write(self._number, Use(0, self._processor, self._stalled, ENDED))

    def _stalled_since(self, processes: Iterable[Path]) -> float:
        """Seconds since the last look in which their threads waited for a processor, added up."""
        stalled = {}
        for process in processes:
            with suppress(OSError, ValueError, IndexError):
                for task in (process / "task").iterdir():
                    stalled[str(task)] = int((task / "schedstat").read_text().split()[1]) / 1e9
        before, self._stalled_by_thread = self._stalled_by_thread, stalled
        return sum(max(0.0, seconds - before.get(task, 0.0)) for task, seconds in stalled.items())


class _State(NamedTuple):
    """The letter that the kernel gives a process (Z: ended, and nobody has asked for it), its processor seconds."""

    letter: str
    processor: float


def _state(process: Path) -> _State | None:
    """None if it has ended."""
    with suppress(OSError, ValueError, IndexError):
        fields = (process / "stat").read_text(errors="replace").rpartition(")")[2].split()
        return _State(fields[0], sum(map(int, fields[11:15])) / _TICKS)  # with those of ended children
    return None


class _Memory(NamedTuple):
    """The bytes that a process has in memory, and those of the kernel's tables of them, which it shares with nobody."""

    resident: int
    page_tables: int


def _memory(process: Path) -> _Memory:
    """Nothing if it has ended."""
    kibibytes = {"VmRSS": 0, "VmPTE": 0}
    with suppress(OSError, ValueError, IndexError):
        for line in (process / "status").read_text(errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name in kibibytes:
                kibibytes[name] = int(value.split()[0])
    return _Memory(*(size * 1024 for size in kibibytes.values()))


def _memory_in_nameless_files(processes: Iterable[Path]) -> int:
    """The bytes of open files that have no name (memfd_create), which are in memory but in no process's size."""
    sizes = {}
    for process in processes:
        with suppress(OSError):
            for file in (process / "fd").iterdir():
                about = file.stat()
                if about.st_nlink == 0 and stat.S_ISREG(about.st_mode):
                    sizes[about.st_dev, about.st_ino] = about.st_blocks * 512
    return sum(sizes.values())


def _own_share_of_memory(process: Path, size: int) -> int:
    """What it has in memory, with what n processes share counted as an n-th; `size` for a process that hides it."""
    with suppress(OSError):
        for line in (process / "smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return size


def _processes(first: int) -> list[Path]:
    """The folders in /proc of the sandbox's processes: all of its own namespace, else the first one's descendants."""
    own = Path("/proc", str(first), "root", "proc")
    with suppress(OSError):
        if own.stat().st_dev != Path("/proc").stat().st_dev:
            return [process for process in own.iterdir() if process.name.isdigit()]
    processes, waiting = [], [first]
    while waiting:
        process = Path(f"/proc/{waiting.pop()}")
        processes.append(process)
        with suppress(OSError):
            for task in (process / "task").iterdir():
                waiting += map(int, (task / "children").read_text().split())
    return processes


def _end_descendants(weak: bool) -> None:
    """Without namespaces: end what the sandbox started; in a namespace all end with the first process."""
    if not weak:
        return
    import psutil

    while left := psutil.Process().children(recursive=True):
        for process in left:
            with suppress(psutil.Error):
                process.kill()
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def _how_it_ended(status: int) -> str:
    if os.WIFSIGNALED(status):
        return f"its process was killed by signal {os.WTERMSIG(status)} ({signal.Signals(os.WTERMSIG(status)).name})"
    return f"its process ended by itself with exit status {os.WEXITSTATUS(status)}"


def _tell(control: socket.socket, reason: str) -> None:
    with suppress(OSError):
        control.send(json.dumps({"reason": reason}).encode())


if __name__ == "__main__":
    main(sys.argv[1:])
