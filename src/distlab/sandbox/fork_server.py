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
import warnings
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from distlab.sandbox import confine, student, system_calls
from distlab.sandbox.confine import MIB, SandboxLimits

_SECONDS_BETWEEN_LOOKS = 0.05
_OBJECTS_BETWEEN_COLLECTIONS = 20_000  # some megabytes, where Python itself would wait for 700
_PAGE = os.sysconf("SC_PAGE_SIZE")


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
    """Fork a keeper for each order, until the other end is closed."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        message, descriptors, _, _ = socket.recv_fds(connection, 4096, 2)
        if not message:
            return
        order = json.loads(message)
        if os.fork() == 0:
            connection.close()
            data, control = (socket.socket(fileno=number) for number in descriptors)
            keep(data, control, SandboxLimits(**order["limits"]), order["weak"], scratch)
        for number in descriptors:
            os.close(number)
        connection.send(b"+")


def keep(data: socket.socket, control: socket.socket, limits: SandboxLimits, weak: bool, scratch: str) -> None:
    """Start a student's process and watch it; ends this process. Why it ended goes to `control`, as JSON."""
    status = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        if sys.platform == "linux":
            system_calls.adopt_orphans()
        folder = tempfile.mkdtemp(dir=scratch) if weak else scratch
        first = _started(data, limits, weak, folder)
        data.close()
        reason = _watch(first, control, limits, weak)
        _tell(control, reason)
        status = 0
    except BaseException as error:
        _tell(control, f"the sandbox could not be kept: {type(error).__name__}: {error}")
    finally:
        os._exit(status)


def _started(data: socket.socket, limits: SandboxLimits, weak: bool, folder: str) -> int:
    """The process number, as seen from here, of the first process in the sandbox. Raises RuntimeError."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _set_up(data, limits, weak, folder, writing)
    os.close(writing)
    with os.fdopen(reading) as report:
        lines = report.read().splitlines()
    if not weak:
        os.waitpid(child, 0)
    number = child if weak else next((int(line) for line in lines if line.isdigit()), 0)
    problems = [line for line in lines if not line.isdigit()]
    if problems or not number:
        raise RuntimeError("; ".join(problems) or "it did not start")
    return number


def _set_up(data: socket.socket, limits: SandboxLimits, weak: bool, folder: str, report: int) -> None:
    """In a process between keeper and student: make the namespaces, fork the student's process into them."""
    try:
        if weak:
            os.setsid()
            confine.limit_only(folder, limits)
        else:
            user = confine.leave_namespaces()
            child = os.fork()
            if child:
                os.write(report, f"{child}\n".encode())
                os._exit(0)
            os.setsid()
            confine.shut_in(folder, limits, user)
    except BaseException as error:
        os.write(report, f"{type(error).__name__}: {error}\n".encode())
        os._exit(1)
    os.close(report)
    student.live(data, limits)


def _watch(first: int, control: socket.socket, limits: SandboxLimits, weak: bool) -> str:
    """Wait until the sandbox is to end or has ended, and leave nothing of it; returns the reason, "" when asked."""
    reason = None
    watched: list[socket.socket | int] = [control, *_end_of(first)]
    while reason is None:
        ready, _, _ = select.select(watched, [], [], _SECONDS_BETWEEN_LOOKS)
        ended, status = os.waitpid(first, os.WNOHANG)
        if ended:
            _end_descendants(weak)
            return _how_it_ended(status)
        reason = "" if control in ready else _passed_limit(first, limits)
    with suppress(ProcessLookupError):
        os.kill(first, signal.SIGKILL)
    _end_descendants(weak)
    with suppress(ChildProcessError):
        os.waitpid(first, 0)
    return reason


def _end_of(process: int) -> list[int]:
    """What can be waited for until the process ends; nothing where the system has no such thing."""
    return [os.pidfd_open(process)] if hasattr(os, "pidfd_open") else []


def _passed_limit(first: int, limits: SandboxLimits) -> str | None:
    sizes = {process: size for process in _processes(first) if (size := _memory(process)) is not None}
    if len(sizes) > limits.processes:
        return f"it started more than {limits.processes} processes"
    # What forked processes share is in the size of each: only if that is too much is it worth the longer look.
    nameless = _memory_in_nameless_files(sizes)
    if sum(sizes.values()) + nameless > limits.memory:
        used = sum(_own_share_of_memory(process, size) for process, size in sizes.items())
        if used + nameless > limits.memory:
            return f"it used more than {limits.memory // MIB} MiB of memory"
    return None


def _memory(process: Path) -> int | None:
    """The bytes that a process has in memory; None if it has ended."""
    with suppress(OSError, ValueError, IndexError):
        return int((process / "statm").read_text().split()[1]) * _PAGE
    return None


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
    """The same, with what n processes share counted as an n-th; `size` for a process that hides it."""
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
