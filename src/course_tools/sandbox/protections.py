"""Which protections hold on this machine: we try, in a sandbox, what must not work."""

import os
import socket
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from course_tools.sandbox import socket_memory, system_call_filter
from course_tools.sandbox.confine import SandboxLimits
from course_tools.sandbox.process import SandboxFailed
from course_tools.sandbox.server import Server, ServerGone
from course_tools.sandbox.student_work import SandboxedWork
from distlab.labs.plain_data import Plain
from distlab.runtime.errors import PlainError

_SECONDS = 30.0


class NoSandbox(PlainError):
    """Students' code cannot be isolated here; the message says what to do."""


@dataclass(frozen=True)
class Protections:
    """True for what students' code cannot reach: the network, this machine's files, its processes, the kernel's rest.

    files: among them the course's own solutions.  system_calls: key rings, tracing, and what else passes the limits.
    sockets: whether the memory in their buffers is counted.  why_counted: why the kernel does not keep the limits on
    memory and processes, so that they are counted again and again; "" if it does.
    """

    network: bool
    files: bool
    processes: bool
    system_calls: bool
    sockets: bool
    why_counted: str

    @property
    def complete(self) -> bool:
        """Whether all hold."""
        return self.network and self.files and self.processes and self.system_calls

    def __str__(self) -> str:
        names = {
            "the network": self.network,
            "other files, the course's own solutions among them": self.files,
            "other processes": self.processes,
            "system calls that pass the limits": self.system_calls,
        }
        closed = [name for name, holds in names.items() if holds]
        reached = [name for name, holds in names.items() if not holds]
        text = "Students' code has limits on time, memory, processes, file sizes and printing"
        text += f", and no access to {', '.join(closed)}" if closed else ""
        text += f". NOT blocked here: {', '.join(reached)}" if reached else ""
        return f"{text}. {self._limits}"

    @property
    def _limits(self) -> str:
        if not self.why_counted:
            return "The Linux kernel keeps the limits on memory, processes and threads (cgroup v2)."
        uncounted = "" if self.sockets else "the buffers of sockets and "
        return (
            "Memory and processes are counted 20 times a second, not limited by the kernel, because "
            f"{self.why_counted}. Not in the count: {uncounted}what the kernel itself stores about a process."
        )


def find(weak: bool = False) -> Protections:
    """What holds; `weak` tries the sandbox without namespaces. Raises NoSandbox if not even that can be made."""
    with (
        tempfile.NamedTemporaryFile(prefix="distlab-") as file,
        socket.socket() as listener,
        Server(weak=weak) as server,
        SandboxedWork(server, SandboxLimits()) as work,
    ):
        Path(file.name).write_text("of the grader")
        Path(file.name).chmod(0o644)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        try:
            reached = work.answer(_SECONDS).inside(attempts, file.name, listener.getsockname()[1], os.getpid())
            why_counted = _why_counted(server, reached)
        except (SandboxFailed, ServerGone) as error:
            raise NoSandbox(f"Students' code cannot be isolated on this machine: {error}.") from None
    if not isinstance(reached, dict):
        raise NoSandbox("Students' code cannot be isolated on this machine: its process gives no answer.")
    return Protections(
        network=not reached.get("network", True),
        files=not reached.get("files", True),
        processes=not reached.get("processes", True),
        system_calls=not reached.get("system calls", True),
        sockets=not weak and socket_memory.is_told(),
        why_counted=why_counted,
    )


def _why_counted(server: Server, reached: Plain) -> str:
    """As the server says; but where it has a group, the sandbox must say that it is in that."""
    if server.group is None:
        return server.why_counted
    place = reached.get("group") if isinstance(reached, dict) else None
    is_in = isinstance(place, str) and f"/{server.group.path.name}/" in place
    return "" if is_in else "a student's process was not in its group of cgroup v2"


def strongest(accept_weak: bool) -> tuple[Protections, bool]:
    """What holds in the best sandbox that this machine allows, and whether that is the weak one.

    Raises NoSandbox unless everything holds or `accept_weak` is true.
    """
    try:
        protections = find()
    except NoSandbox as error:
        if not accept_weak:
            raise NoSandbox(
                f"{error} On Linux allow namespaces (run as root, or permit unprivileged user namespaces); or set "
                "--weak to grade with limits only, on a machine where students' code can do no harm."
            ) from None
        return find(weak=True), True
    if not protections.complete and not accept_weak:
        raise NoSandbox(f"{protections} Add --weak to grade anyway, on a machine where students' code can do no harm.")
    return protections, False


def attempts(namespace: Mapping[str, object], file: str, port: int, process: int) -> dict[str, bool | str]:
    """What code in the sandbox reaches: a port, a file and a process of the grader, a system call that is refused.

    And the group of cgroup v2 that it is in.
    """
    reached: dict[str, bool | str] = {"network": True, "files": True, "processes": True, "system calls": True}
    with suppress(OSError):
        reached["group"] = Path("/proc/self/cgroup").read_text()
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except OSError:
        reached["network"] = False
    try:
        Path(file).read_text()
    except OSError:
        reached["files"] = False
    try:
        os.kill(process, 0)
    except OSError:
        reached["processes"] = False
    try:
        os.close(os.memfd_create("x"))
    except (OSError, AttributeError):
        reached["system calls"] = not system_call_filter.is_known()
    return reached
