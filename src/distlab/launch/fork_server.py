"""An interpreter that has imported TensorFlow once and forks a process for each program that is to run with it.

    python -P -m distlab.launch.fork_server LISTENER MODULE...

Importing TensorFlow takes seconds of processor time and 200 MB of memory that ranks would each spend again; a fork
shares both. Each forked process runs its program as `python program.py` does: with its own environment, working folder,
streams and exit status. A program is declined, and then runs in an interpreter of its own, when a variable differs that
Python or a library reads as it starts. The first connection is its owner's, which may name more modules to import, in
lines: when it closes, the server ends, and its programs with it. Linux only.
"""

import atexit
import ctypes
import gc
import importlib
import json
import os
import runpy
import selectors
import shutil
import signal
import socket
import sys
import types
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from distlab.launch import rank_process
from distlab.launch.forked_program import ProgramRequest, receive_request
from distlab.runtime import processes

# What mpirun, horovodrun and the launcher tell a single process; libraries read it when training begins, not before.
LATE_VARIABLES = (
    "TF_CONFIG",
    "TF_NUM_INTRAOP_THREADS",
    "TF_NUM_INTEROP_THREADS",
    "CUDA_VISIBLE_DEVICES",
    "PATH",
    "PWD",
    "OLDPWD",
    "SHLVL",
    "_",
)
LATE_PREFIXES = ("OMPI_", "PMIX_", "PMI_", "HOROVOD_", "NCCL_", "HFI_", "IPATH_", "DISTLAB_", "PYTEST_", "JPY_")


def early_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Those variables that an interpreter or a library may read as it starts: all but the known late ones."""
    early = {
        name: value
        for name, value in environment.items()
        if name not in LATE_VARIABLES and not name.startswith(LATE_PREFIXES)
    }
    # mpirun adds the folder of its own libraries, which this environment's programs find without it.
    folders = early.pop("LD_LIBRARY_PATH", "").split(":")
    if others := [folder for folder in folders if folder not in ("", str(Path(sys.prefix) / "lib"))]:
        early["LD_LIBRARY_PATH"] = ":".join(others)
    return early


@dataclass
class _Running:
    """A forked process: the connection of the process it stands for, its number, and what tells of its end."""

    connection: socket.socket
    pid: int
    pidfd: int


class ForkServer:
    """The loop that forks and reports; in a forked process `serve` returns the request it is to carry out."""

    def __init__(self, listener: socket.socket) -> None:
        """`listener`: a listening Unix socket; its first connection is the owner's."""
        rank_process.adopt()
        self._listener = listener
        self._owner, _ = listener.accept()
        self._environment = early_variables(os.environ)
        self._processors = sorted(os.sched_getaffinity(0))
        self._mark = _MarkInPlace()
        self._before = set(os.environ), set(sys.modules)
        self.imported: set[str] = set()
        self.set_by_imports: dict[str, str] = {}
        self._running: dict[int, _Running] = {}
        self._selector = selectors.DefaultSelector()
        for file in (listener, self._owner):
            self._selector.register(file, selectors.EVENT_READ)

    def import_modules(self, modules: Iterable[str]) -> None:
        """Import what programs will find imported."""
        for module in modules:
            with suppress(Exception):  # a program that needs it will say why it cannot be imported
                importlib.import_module(module)
        variables_before, modules_before = self._before
        self.imported = set(sys.modules) - modules_before
        # A request may have these already: horovodrun, forked itself, hands them to its ranks.
        self.set_by_imports = {name: value for name, value in os.environ.items() if name not in variables_before}
        self._environment = early_variables({**self.set_by_imports, **self._environment})
        gc.collect()
        gc.freeze()  # the collector of a forked process leaves these objects, and so their memory pages, alone

    def serve(self) -> ProgramRequest:
        """Fork a process for each request until the owner is gone, which ends this process."""
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is self._owner:
                    modules = self._owner.recv(4096).decode().split()
                    self.import_modules(modules) if modules else self._end()
                elif key.fileobj is self._listener:
                    if request := self._accept():
                        return request
                else:
                    self._report(key.data, ended=key.fd == key.data.pidfd)

    def _accept(self) -> ProgramRequest | None:
        """Take one request; returns it in the forked process, None in the server."""
        connection, _ = self._listener.accept()
        request = receive_request(connection)
        if request is None:
            connection.close()
        elif reason := self._reason_to_decline(request):
            _answer(connection, declined=reason)
            connection.close()
        elif pid := os.fork():
            running = _Running(connection, pid, os.pidfd_open(pid))
            for file in (connection, running.pidfd):
                self._selector.register(file, selectors.EVENT_READ, running)
            self._running[pid] = running
            _answer(connection, pid=pid)
        else:
            self._leave()
            connection.close()
            self._mark.write(request.environment.get(processes.MARK, ""))
            return request
        if request:
            for number in request.streams:
                os.close(number)
        return None

    def _reason_to_decline(self, request: ProgramRequest) -> str | None:
        if early_variables({**self.set_by_imports, **request.environment}) != self._environment:
            return "its environment differs"
        if request.processors != self._processors:
            return "it is bound to other processors"
        if not self._mark.fits(request.environment.get(processes.MARK, "")):
            return "its marks are too long"
        return None

    def _report(self, running: _Running, ended: bool) -> None:
        """A program has ended: tell its exit status. Or who asked for it has: end the program."""
        if not ended:
            with suppress(ProcessLookupError):
                os.kill(running.pid, signal.SIGKILL)
        if self._running.pop(running.pid, None):
            _, status = os.waitpid(running.pid, 0)
            with suppress(OSError):
                _answer(running.connection, status=os.waitstatus_to_exitcode(status))
            for file in (running.connection, running.pidfd):
                self._selector.unregister(file)
            running.connection.close()
            os.close(running.pidfd)
            if not self._running:
                rank_process.kill_children()  # what the programs of the job have left

    def _end(self) -> NoReturn:
        """The owner is gone, and may have been killed before it could remove the socket's folder."""
        shutil.rmtree(Path(self._listener.getsockname()).parent, ignore_errors=True)
        sys.exit()

    def _leave(self) -> None:
        """In a forked process: let go of what is the server's."""
        self._selector.close()
        self._listener.close()
        self._owner.close()
        for running in self._running.values():
            running.connection.close()
            os.close(running.pidfd)


class _MarkInPlace:
    """The mark in the environment as the system shows it for this process (/proc/PID/environ).

    By it a run's processes are found and ended. A forked process would show its server's: setting a variable changes
    the C library's copy only.
    """

    def __init__(self) -> None:
        getenv = ctypes.CDLL(None).getenv
        getenv.argtypes, getenv.restype = [ctypes.c_char_p], ctypes.c_void_p
        self._size = len(os.environb.get(processes.MARK.encode(), b""))
        self._address = getenv(processes.MARK.encode())

    def fits(self, marks: str) -> bool:
        """Whether the marks can take the place of the server's, which are written with room after them."""
        return self._address is not None and len(marks.encode()) <= self._size

    def write(self, marks: str) -> None:
        """Replace the server's marks, in a forked process."""
        ctypes.memmove(self._address, marks.encode().ljust(self._size), self._size)


def become(request: ProgramRequest, set_by_imports: Mapping[str, str]) -> None:
    """Turn this forked process into one that the request describes, all but running the program."""
    _end_with_parent()
    os.setsid()
    for number, stream in enumerate(request.streams):
        os.dup2(stream, number)
        os.close(stream)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    os.chdir(request.folder)
    os.umask(request.umask)
    os.environ.clear()
    os.environ.update({**set_by_imports, **request.environment})
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed()  # Python's own generator seeds itself again after a fork


def run(arguments: Sequence[str]) -> NoReturn:
    """Run `program.py …` or `-m module …` as this process's program, and end the process with its exit status."""
    try:
        if arguments[0] == "-m":
            sys.argv = list(arguments[1:])
            sys.path.insert(0, str(Path.cwd()))
            runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv = list(arguments)
            sys.path.insert(0, str(Path(arguments[0]).parent))
            _run_as_main(arguments[0])
    except Exception as error:
        trace = error.__traceback__
        while trace and trace.tb_frame.f_code.co_filename == __file__:
            trace = trace.tb_next  # the program's traceback begins with the program
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        sys.exit(1)
    sys.exit()


def _run_as_main(program: str) -> None:
    module = types.ModuleType("__main__")
    module.__file__ = program
    server, sys.modules["__main__"] = sys.modules["__main__"], module
    module.__dict__["__builtins__"] = server.__dict__["__builtins__"]
    exec(compile(Path(program).read_bytes(), program, "exec"), module.__dict__)


def _end_with_parent() -> None:
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL, 0, 0, 0)


def _keep(names: Iterable[str]) -> None:
    """Let the interpreter end without taking these modules apart.

    To free their objects it would write to nearly all the memory that the forked processes share, and so copy it.
    """
    kept = [sys.modules.pop(name, None) for name in names]
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))


def _answer(connection: socket.socket, **message: object) -> None:
    connection.sendall(json.dumps(message).encode() + b"\n")


def main(arguments: Sequence[str]) -> NoReturn:
    """Import the modules, then fork programs until the owner is gone."""
    listener, *modules = arguments
    server = ForkServer(socket.socket(fileno=int(listener)))
    atexit.register(lambda: _keep(server.imported))  # registered first, so that it runs last
    server.import_modules(modules)
    warnings.simplefilter("ignore", DeprecationWarning)  # TensorFlow's and NumPy's idle threads are not needed
    request = server.serve()
    become(request, server.set_by_imports)
    run(request.arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
