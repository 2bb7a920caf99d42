"""The fork server of this process: started for the first job that profits from it, ended with this process."""

import atexit
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from distlab.launch import forked_program
from distlab.launch.fork_server import early_variables
from distlab.launch.job import Command
from distlab.launch.program_source import imported_packages, variables_set
from distlab.launch.rank_process import folder_for_sockets
from distlab.runtime import environment as course_environment
from distlab.runtime import processes

_PROGRAMS_THAT_IMPORT = {"tensorflow", "tf_keras", "horovod"}
# A process that the server forks shows its own marks, which may be more than the server's, in the place of these.
_ROOM_FOR_MARKS = 400
_SECONDS_TO_END = 5.0


def _keras(environment: Mapping[str, str]) -> str:
    """The Keras that `tf.keras` is under these variables."""
    return "tf_keras" if course_environment.has_legacy_keras(environment) else "keras"


class PreparedInterpreter:
    """A running fork server for programs with one set of early variables."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """Start it; it takes requests at once and carries them out when it is ready."""
        self._early = early_variables(environment)
        self._folder = tempfile.mkdtemp(prefix="distlab-", dir=folder_for_sockets())
        self._path = str(Path(self._folder) / "interpreter")
        self._process_id = os.getpid()
        self._imported = {"tensorflow", _keras(environment)}
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(self._path)
            listener.listen(64)
            server = [sys.executable, "-P", "-m", "distlab.launch.fork_server", str(listener.fileno())]
            self._server = processes.start(
                [*server, *sorted(self._imported, reverse=True)],
                processes.new_mark() + " " * _ROOM_FOR_MARKS,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[listener.fileno()],
            )
        self._owner = socket.socket(socket.AF_UNIX)
        self._owner.connect(self._path)

    def fits(self, environment: Mapping[str, str]) -> bool:
        """Whether it can run a program with these variables."""
        alive = self._process_id == os.getpid() and self._server.poll() is None
        return alive and early_variables(environment) == self._early

    def import_too(self, package: str) -> None:
        """Let it import a package, once, before it runs the next program."""
        if package not in self._imported:
            self._imported.add(package)
            self._owner.sendall(f"{package}\n".encode())

    def command(self, command: list[str]) -> list[str]:
        """What to run instead of `python program.py …`."""
        return [sys.executable, "-I", "-S", forked_program.__file__, self._path, *command]

    def close(self) -> None:
        """End it, and whatever it still runs."""
        self._owner.close()
        try:
            self._server.wait(_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            self._server.kill()
            self._server.wait()
        shutil.rmtree(self._folder, ignore_errors=True)


class _Current:
    """The one server that this process has at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._interpreter: PreparedInterpreter | None = None

    def for_job(self, environment: Mapping[str, str], count: int) -> PreparedInterpreter | None:
        """The server for a job of `count` programs; None when one is not worth starting, or cannot be here."""
        if sys.platform != "linux":
            return None
        with self._lock:
            if self._interpreter and self._interpreter.fits(environment):
                return self._interpreter
            if count < 2:
                return None
            self._end()
            self._interpreter = PreparedInterpreter(environment)
            atexit.register(self.end)
            return self._interpreter

    def end(self) -> None:
        """End the server, if there is one."""
        with self._lock:
            self._end()

    def _end(self) -> None:
        if self._interpreter:
            atexit.unregister(self.end)
            self._interpreter.close()
        self._interpreter = None


_current = _Current()
end = _current.end


def forked(commands: Sequence[Command], command: Sequence[str], count: int, program: Path) -> list[Command]:
    """The commands of a job with forks instead of new interpreters, where that is possible and worth it.

    `command`: the program's own, at the end of each, without what takes the place of `{result}`. `count`: how many
    processes will run it. horovodrun, a Python program that imports TensorFlow to see what Horovod was built for, is
    forked too.
    """
    environment = commands[0].whole_environment()
    packages = imported_packages(program)
    comes_too_late = early_variables(dict.fromkeys(variables_set(program), ""))  # where the imports are done already
    if not packages & _PROGRAMS_THAT_IMPORT or comes_too_late:
        return list(commands)
    if not (interpreter := _current.for_job(environment, count)):
        return list(commands)
    if "keras" in packages:
        interpreter.import_too("keras")
    changed = []
    for of_job in commands:
        starter, program_command = of_job.arguments[: -len(command)], of_job.arguments[-len(command) :]
        if starter and Path(starter[0]).name == "horovodrun":
            starter = [*interpreter.command([sys.executable]), *starter]
        changed.append(replace(of_job, arguments=[*starter, *interpreter.command(program_command)]))
    return changed
