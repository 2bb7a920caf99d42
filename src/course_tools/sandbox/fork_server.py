"""Between grader and students' code: `python -m course_tools.sandbox.fork_server FD SCRATCH GROUP MODULE…`.

The server has imported what students' code will import, so that a sandbox is ready in milliseconds, and knows nothing
else. For each sandbox it forks a keeper, which stays outside and ends it: when the grader asks, when the grader has
ended, when the sandbox passes a limit.
"""

import gc
import importlib
import json
import os
import pdb
import resource
import select
import shutil
import signal
import socket
import sys
import tempfile
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from course_tools.sandbox import confine, student, system_call_filter, system_calls
from course_tools.sandbox.confine import Confinement, SandboxLimits
from course_tools.sandbox.control_groups import Group, GroupSettings, SandboxGroup
from course_tools.sandbox.gauge import Gauge, too_much_memory
from course_tools.sandbox.meter import Meter
from course_tools.sandbox.socket_memory import SocketMemory

_SECONDS_BETWEEN_LOOKS = 0.05
_OBJECTS_BETWEEN_COLLECTIONS = 20_000  # some megabytes, where Python itself would wait for 700
_LONGEST_ORDER = 65536


def main(arguments: list[str]) -> None:
    """Import the modules and serve."""
    descriptor, scratch, group, *modules = arguments
    pdb.set_trace = lambda *_, **__: None  # left in an answer, it does as little as breakpoint(): nobody can answer
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
    servers_group = Group(Path(group)) if group else None
    serve(socket.socket(fileno=int(descriptor)), scratch, servers_group)
    shutil.rmtree(scratch, ignore_errors=True)  # the grader may have been killed
    if servers_group is not None:
        with suppress(OSError):
            servers_group.remove()


def serve(connection: socket.socket, scratch: str, group: Group | None = None) -> None:
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
            gauge = Gauge(Meter(descriptors[2]), order["number"])
            keep(data, control, gauge, confinement, scratch, _maker_of_group(group, order))
        for number in descriptors:
            os.close(number)
    with suppress(ChildProcessError):
        os.wait()  # whose children are ignored waits for all of them


def _maker_of_group(server: Group | None, order: dict[str, Any]) -> Callable[[], SandboxGroup] | None:
    """Makes the group that an order wants its sandbox to be in."""
    if server is None:
        return None
    details = order["group"]
    settings = GroupSettings(details["student"], details["sandbox"])
    return lambda: SandboxGroup(server, details["name"], order["number"], settings)


def keep(
    data: socket.socket,
    control: socket.socket,
    gauge: Gauge,
    confinement: Confinement,
    scratch: str,
    make_group: Callable[[], SandboxGroup] | None = None,
) -> None:
    """Start a student's process and watch it; ends this process. Why it ended goes to `control`, as JSON."""
    status, group = 1, None
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        if sys.platform == "linux":
            system_calls.adopt_orphans()
        folder = tempfile.mkdtemp(dir=scratch) if confinement.weak else scratch
        group = make_group() if make_group is not None else None
        first, gauge.sockets = _started(data, confinement, folder, group)
        data.close()
        has_ended = False
        try:
            reason, has_ended = _watch(first, control, gauge, confinement.limits)
            if has_ended and "SIGKILL" in reason and group is not None and group.has_run_out_of_memory:
                reason = too_much_memory(confinement.limits)
        finally:
            _end(None if has_ended else first, confinement.weak)
            gauge.end()
        _tell(control, reason)
        status = 0
    except BaseException as error:
        _tell(control, _in_words(error))
    finally:
        if group is not None:
            with suppress(OSError):  # then the server tries again
                group.remove()
        os._exit(status)


def _started(
    data: socket.socket, confinement: Confinement, folder: str, group: SandboxGroup | None
) -> tuple[int, SocketMemory | None]:
    """The process number, as seen from here, of the first process in the sandbox, and the memory of its sockets.

    That is None where they are not the sandbox's own or the kernel does not list them. Raises RuntimeError.
    """
    own, report = socket.socketpair()
    waiting, go = os.pipe()
    child = os.fork()
    if child == 0:
        own.close()
        os.close(go)
        _set_up(data, confinement, folder, report, waiting)
    report.close()
    os.close(waiting)
    lines, sockets = _report(own)
    if not confinement.weak:
        os.waitpid(child, 0)
    number = child if confinement.weak else next((int(line) for line in lines if line.isdigit()), 0)
    problems = [line for line in lines if not line.isdigit()]
    if problems or not number:
        raise RuntimeError("; ".join(problems) or "it did not start")
    if group is not None:
        group.add(number)
    os.write(go, b"+")
    os.close(go)
    return number, sockets


def _report(connection: socket.socket) -> tuple[list[str], SocketMemory | None]:
    """What was told until the other end was closed: lines, and the connection by which the kernel lists sockets."""
    text, descriptors = b"", list[int]()
    with connection:
        while True:
            part, files, _, _ = socket.recv_fds(connection, _LONGEST_ORDER, 1)
            if not part:
                break
            text, descriptors = text + part, descriptors + files
    sockets = SocketMemory(socket.socket(fileno=descriptors[0])) if descriptors else None
    return text.decode(errors="replace").splitlines(), sockets


def _set_up(data: socket.socket, confinement: Confinement, folder: str, report: socket.socket, waiting: int) -> None:
    """In a process between keeper and student: make the namespaces, fork the student's process into them."""
    try:
        if confinement.weak:
            os.setsid()
            confine.limit_only(folder, confinement.limits)
        else:
            user = confine.leave_namespaces()
            child = os.fork()
            if child:
                line = f"{child}\n".encode()
                sockets = _own_sockets()
                socket.send_fds(report, [line], [] if sockets is None else [sockets.connection.fileno()])
                os._exit(0)
            os.setsid()
            confine.shut_in(folder, confinement, user)
        system_call_filter.refuse()
    except BaseException as error:
        report.send(f"{_in_words(error)}\n".encode())
        os._exit(1)
    report.close()
    if os.read(waiting, 1) != b"+":  # the keeper has ended
        os._exit(1)
    if sys.platform == "linux":
        system_calls.end_with_parent()  # now that the keeper is the parent
    student.live(data, confinement.limits)


def _own_sockets() -> SocketMemory | None:
    with suppress(OSError):
        sockets = SocketMemory()
        sockets.read()
        return sockets
    return None


def _watch(first: int, control: socket.socket, gauge: Gauge, limits: SandboxLimits) -> tuple[str, bool]:
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


def _in_words(error: BaseException) -> str:
    """What stopped a sandbox; the sentences of this package are RuntimeErrors."""
    return str(error) if isinstance(error, RuntimeError) else f"{type(error).__name__}: {error}"


def _tell(control: socket.socket, reason: str) -> None:
    with suppress(OSError):
        control.send(json.dumps({"reason": reason}).encode())


if __name__ == "__main__":
    main(sys.argv[1:])
