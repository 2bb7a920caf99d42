"""Which jail this machine allows, and what holds in it: we try, inside, what must not work."""

import os
import socket
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from course_tools.sandbox import jail
from course_tools.sandbox.jail import Kind, Setting
from course_tools.sandbox.work import SandboxedWork, SandboxFailed
from distlab.labs.plain_data import Plain
from distlab.runtime.errors import PlainError

_LIMITS = "Students' code has limits on time, memory, processes and files"


def strongest(accept_weak: bool) -> tuple[Kind, str]:
    """The best jail of this machine, and a sentence on what holds in it.

    Raises PlainError if nothing but limits holds, unless that is accepted.
    """
    problems = []
    for kind in jail.candidates():
        try:
            reached = reached_in(kind)
        except SandboxFailed as error:
            problems.append(str(error))
            continue
        if not reached:
            return kind, f"{_LIMITS}, and reaches no network, file or process of this machine ({kind})."
        if accept_weak:
            return kind, f"{_LIMITS}. NOT blocked here: {', '.join(reached)} ({kind})."
        problems.append(f"{kind}: students' code reaches {', '.join(reached)}")
    raise PlainError(
        f"Students' code cannot be isolated on this machine ({'; '.join(problems)}). On Linux install bubblewrap, or "
        "permit unprivileged user namespaces, or be root; or add --weak (with make: WEAK=1) to grade with limits only, "
        "on a machine where students' code can do no harm."
    )


def reached_in(kind: Kind) -> list[str]:
    """What code in a jail of that kind reaches; [] where nothing. Raises SandboxFailed."""
    with tempfile.NamedTemporaryFile(prefix="distlab-") as file, socket.create_server(("127.0.0.1", 0)) as listener:
        Path(file.name).chmod(0o644)
        with SandboxedWork(Setting(kind=kind)) as work:
            given = work.answer(60).inside(attempts, file.name, listener.getsockname()[1], os.getpid())
    return [str(name) for name in given] if isinstance(given, list) else ["everything"]


def attempts(namespace: Mapping[str, Plain], file: str, port: int, process: int) -> list[str]:
    """What code in the jail reaches: a port, a file, and a process of the grader."""
    reached = []
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5):
        reached.append("the network")
    with suppress(OSError):
        Path(file).read_text()
        reached.append("the files of this machine")
    if Path(f"/proc/{process}/cmdline").exists() or not Path("/proc/self").exists():
        reached.append("the processes of this machine")
    return reached
