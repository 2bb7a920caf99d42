"""The server as the grader has it: a process that imports what students need once and forks their processes."""

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from course_tools.sandbox import control_groups
from course_tools.sandbox.confine import SandboxLimits
from course_tools.sandbox.meter import Meter
from distlab.runtime import environment

# Several processes of the grader send orders: each has to arrive as a whole.
_ONE_ORDER_AT_A_TIME = socket.SOCK_SEQPACKET if sys.platform == "linux" else socket.SOCK_STREAM
# Nothing else of the grader's environment reaches a student's code.
_KEPT_VARIABLES = ("LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH")
_OWN_VARIABLES = {
    "HOME": "/tmp",
    "MPLBACKEND": "Agg",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONBREAKPOINT": "0",  # a forgotten breakpoint() does nothing, since nobody can answer
    # One thread each: sandboxes run side by side, and a forked process has no other threads.
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}


class ServerGone(Exception):
    """No sandbox can be started any more."""


class Server:
    """Starts sandboxes: a process that they are forked from (see `fork_server`); use it in a `with` block."""

    def __init__(
        self,
        modules: Sequence[str] = (),
        weak: bool = False,
        hidden: Sequence[str] = (),
        controllers: Sequence[str] = control_groups.CONTROLLERS,
    ) -> None:
        """`modules` are imported before the first sandbox; `weak` uses no namespaces even where they are allowed.

        `hidden` are paths of files and folders that no sandbox sees; without namespaces it sees them. `controllers` are
        those of the kernel's that sandboxes have limits by; where there are none, `why_counted` says why.
        """
        self._modules, self._weak, self._hidden = tuple(modules), weak, list(hidden)
        self._controllers = controllers
        self.group: control_groups.Group | None = None
        self.why_counted = ""

    def __enter__(self) -> "Server":
        try:
            self.group = self._new_group()
        except (control_groups.NoGroups, OSError) as reason:
            self.why_counted = str(reason)
        self._folder = tempfile.TemporaryDirectory(prefix="distlab-grading-", ignore_cleanup_errors=True)
        self._connection, servers_end = socket.socketpair(socket.AF_UNIX, _ONE_ORDER_AT_A_TIME)
        kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
        variables = environment.variables() | kept | _OWN_VARIABLES | {"PATH": os.environ["PATH"]}
        group = "" if self.group is None else str(self.group.path)
        arguments = [str(servers_end.fileno()), self._folder.name, group, *self._modules]
        self._log = Path(self._folder.name) / "server.log"
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "course_tools.sandbox.fork_server", *arguments],
                env=variables,
                cwd=self._folder.name,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[servers_end.fileno()],
                start_new_session=True,
            )
        servers_end.close()
        return self

    def __exit__(self, *exception: object) -> None:
        self._connection.close()
        self._process.wait()  # for all keepers too
        self._folder.cleanup()
        if self.group is not None:
            with suppress(OSError):  # an empty group harms nobody
                self.group.remove()

    @property
    def has_ended(self) -> bool:
        """Whether no sandbox can be started any more; asked in the process that has started this server."""
        return self._process.poll() is not None

    def leave(self) -> None:
        """In a forked process: start no sandbox any more; the other processes that have this server can."""
        self._connection.close()

    def start(self, limits: SandboxLimits, meter: Meter) -> tuple[socket.socket, socket.socket, int]:
        """A new sandbox, as two connections, to the student's process and to its keeper, and its number in the meter.

        Raises ServerGone.
        """
        data, students = socket.socketpair()
        control, keepers = socket.socketpair()
        number = meter.next_number()
        details = {"limits": asdict(limits), "weak": self._weak, "hidden": self._hidden, "number": number}
        if self.group is not None:
            details["group"] = {"name": meter.name, **asdict(control_groups.settings(limits, self._controllers))}
        try:
            descriptors = [students.fileno(), keepers.fileno(), meter.descriptor]
            socket.send_fds(self._connection, [json.dumps(details).encode()], descriptors)
        except OSError as error:
            raise ServerGone(f"the process that starts sandboxes {self._why_ended()}") from error
        finally:
            students.close()
            keepers.close()
        return data, control, number

    def _new_group(self) -> control_groups.Group:
        if self._weak and os.getuid():
            raise control_groups.NoGroups("without namespaces, a user's processes can leave the user's groups")
        return control_groups.with_limits(control_groups.own_groups(), self._controllers)

    def _why_ended(self) -> str:
        """Its error, if it had one. Its exit status only its parent could ask for, which is another process."""
        log = self._log.read_text(errors="replace").strip()
        if "Traceback" in log:
            return f"has ended: {log.splitlines()[-1]}"
        return "was killed, perhaps because memory was short; grade again, with --at-once 1"
