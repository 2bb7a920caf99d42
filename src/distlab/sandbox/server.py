"""The process that sandboxes are forked from (`fork_server`), as the grader holds it."""

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from distlab.runtime import environment
from distlab.sandbox.limits import Limits

# Nothing else of the grader's environment reaches a student's code.
_KEPT_VARIABLES = ("LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH")
_OWN_VARIABLES = {
    "HOME": "/tmp",
    "MPLBACKEND": "Agg",
    "PYTHONDONTWRITEBYTECODE": "1",
    # One thread each: sandboxes run side by side, and a forked process has no other threads.
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}


class ServerGone(Exception):
    """No sandbox can be started any more."""


class Server:
    """Starts sandboxes; use it in a `with` block. `modules` are imported before the first one."""

    def __init__(self, modules: Sequence[str] = (), weak: bool = False) -> None:
        """`weak` does without namespaces even where they are allowed."""
        self._modules, self._weak = tuple(modules), weak
        self._lock = threading.Lock()

    def __enter__(self) -> "Server":
        self._folder = tempfile.TemporaryDirectory(prefix="distlab-grading-", ignore_cleanup_errors=True)
        self._connection, other = socket.socketpair()
        kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
        variables = environment.variables() | kept | _OWN_VARIABLES | {"PATH": os.environ["PATH"]}
        command = [
            sys.executable,
            "-P",
            "-m",
            "distlab.sandbox.fork_server",
            str(other.fileno()),
            self._folder.name,
        ]
        self._log = Path(self._folder.name) / "server.log"
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [*command, *self._modules],
                env=variables,
                cwd=self._folder.name,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[other.fileno()],
                start_new_session=True,
            )
        other.close()
        return self

    def __exit__(self, *exception: object) -> None:
        self._connection.close()
        self._process.wait()
        self._folder.cleanup()

    def start(self, limits: Limits) -> tuple[socket.socket, socket.socket]:
        """A new sandbox, as two connections: to the student's process and to its keeper."""
        data, students = socket.socketpair()
        control, keepers = socket.socketpair()
        order = json.dumps({"limits": asdict(limits), "weak": self._weak}).encode()
        try:
            with self._lock:
                socket.send_fds(self._connection, [order], [students.fileno(), keepers.fileno()])
                if not self._connection.recv(1):
                    raise ServerGone(f"the process that starts sandboxes has ended: {self._last_line()}")
        except OSError as error:
            raise ServerGone(f"the process that starts sandboxes has ended: {self._last_line() or error}") from error
        finally:
            students.close()
            keepers.close()
        return data, control

    def _last_line(self) -> str:
        lines = self._log.read_text(errors="replace").splitlines()
        return lines[-1] if lines else ""
