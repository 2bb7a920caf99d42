"""An interpreter that has imported TensorFlow once and forks a process for each program that is to run with it.

Importing TensorFlow takes seconds of processor time and 200 MB of memory that ranks would each spend again; a fork
shares both. `server_for` gives the server of this process, which is started for the first job that profits from it and
ends with this process. Linux only.

    python -P -m distlab.launch.fork_server LISTENER MODULE...

is the server. For each request it forks a process, and that a second one, for which it waits. This runs its program as
`python program.py` does: with the environment, working folder and streams of the `rank_process` that asks for it, which
gets its exit status. A program is declined, and then runs in an interpreter of its own, when a variable differs that
Python or a library reads as it starts, or when it may use other processors. When the server's standard input is closed,
it ends, and its programs with it.

The forkserver of `multiprocessing` preloads modules too, but its processes belong to the one process that
has started it, by a pickled function: ranks are started by mpirun and horovodrun, which do not know it, and their
streams, environment and signals would have to be handed over by the code below all the same.
"""

import atexit
import builtins
import ctypes
import gc
import importlib
import json
import os
import re
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import types
import warnings
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from distlab.launch import rank_process
from distlab.runtime import environment as course_environment
from distlab.runtime import processes

Request = dict[str, Any]
"""`name`, `arguments` without the interpreter, `environment`, `folder`, the numbers of `processors`."""

# What mpirun, horovodrun and the launcher tell a single process; libraries read it when training begins, not before.
# mpirun adds the folder of its own libraries, which this environment's programs find without it.
LATE_VARIABLES = re.compile(
    "TF_CONFIG|TF_NUM_(INTRA|INTER)OP_THREADS|CUDA_VISIBLE_DEVICES|(LD_LIBRARY_)?PATH|PWD|OLDPWD|SHLVL|_"
    "|(OMPI|PMIX|PMI|HOROVOD|NCCL|HFI|IPATH|DISTLAB|PYTEST|JPY)_.*"
)
_IMPORTS_TENSORFLOW = re.compile(r"^\s*(import|from) (tensorflow|tf_keras|horovod)\b", re.MULTILINE)
_SETS_VARIABLE = re.compile(
    r"""environ(?:\[["'](\w+)["']\] *=(?!=) *|\.setdefault\(["'](\w+)["'], *)(?:["'](\w*)["'])?"""
)


def early_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Those variables that an interpreter or a library may read as it starts: all but the known late ones."""
    return {name: value for name, value in environment.items() if not LATE_VARIABLES.fullmatch(name)}


class PreparedInterpreter:
    """A running server for programs with one set of early variables; its owner is this process."""

    def __init__(self, environment: Mapping[str, str], *modules: str) -> None:
        """Start it; it takes requests at once, and carries them out when it has imported TensorFlow and `modules`."""
        self._early = early_variables(environment)
        self._folder = tempfile.mkdtemp(prefix="distlab-", dir=rank_process.folder_for_sockets())
        self.path = str(Path(self._folder) / "interpreter")
        keras = "tf_keras" if course_environment.has_legacy_keras(environment) else "keras"
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(self.path)
            listener.listen(64)
            number = listener.fileno()
            self.process = processes.start(
                [sys.executable, "-P", "-m", "distlab.launch.fork_server", str(number), "tensorflow", keras, *modules],
                processes.new_mark(),
                env=dict(environment),
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[number],
            )

    def fits(self, environment: Mapping[str, str]) -> bool:
        """Whether it can run a program with these variables."""
        return self.process.poll() is None and early_variables(environment) == self._early

    def close(self) -> None:
        """End it, and whatever it still runs."""
        with self.process:
            self.process.kill()  # its programs end with it
        shutil.rmtree(self._folder, ignore_errors=True)


_current: list[PreparedInterpreter] = []


def server_for(program: Path, environment: Mapping[str, str], processes_of_job: int) -> str | None:
    """The path of this process's server for a program with these variables; None where a fork is not worth it.

    Nor is it possible elsewhere than on Linux, and for a program that gives a variable which its imports read another
    value than it has.
    """
    source = program.read_text(errors="replace")
    sets = {name or default: value for name, default, value in _SETS_VARIABLE.findall(source)}
    changes = {name: value for name, value in sets.items() if environment.get(name) != value}
    if sys.platform != "linux" or not _IMPORTS_TENSORFLOW.search(source) or early_variables(changes):
        return None
    if not (_current and _current[0].fits(environment)):
        if processes_of_job < 2:
            return None
        _end_current()
        _current.append(PreparedInterpreter(environment))
    return _current[0].path


@atexit.register
def _end_current() -> None:
    while _current:
        _current.pop().close()


def _serve(listener: socket.socket, set_by_imports: Mapping[str, str]) -> Request:
    """Fork a process for each request until the owner is gone; returns in the process that is to run the program."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how those that wait for programs end
    while True:
        ready, _, _ = select.select([sys.stdin, listener], [], [])
        if sys.stdin in ready:  # the owner may have been killed before it could remove the socket's folder
            shutil.rmtree(Path(listener.getsockname()).parent, ignore_errors=True)
            sys.exit()
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            return _carry_out(connection, set_by_imports)
        connection.close()


def _carry_out(connection: socket.socket, set_by_imports: Mapping[str, str]) -> Request:
    """Fork the program of one request, tell its process id and its exit status, and end this process.

    In the forked one it returns the request.
    """
    _end_with_parent()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _, streams, _, _ = socket.recv_fds(connection, 1, 3)
    with connection.makefile("rb") as lines:
        request = json.loads(lines.readline())
    # A request may have these already: horovodrun, forked itself, hands them to its ranks.
    variables = {**set_by_imports, **request["environment"]}
    read_already = early_variables(os.environ), sorted(os.sched_getaffinity(0))
    if (early_variables(variables), request["processors"]) != read_already:
        os._exit(0)  # the program runs without the server
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    rank_process.begin(request["name"])
    if (pid := os.fork()) == 0:
        _end_with_parent()
        connection.close()
        return {**request, "environment": variables}
    poll = select.poll()
    poll.register(os.pidfd_open(pid), select.POLLIN)
    poll.register(connection, select.POLLRDHUP)
    with suppress(OSError):  # whoever asked for it may be gone
        connection.sendall(f"{pid}\n".encode())
        poll.poll()  # until the program has ended, or who asked for it has
    os.kill(pid, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    rank_process.end(request["name"], status)
    with suppress(OSError):
        connection.sendall(f"{status}\n".encode())
    os._exit(0)


def _end_with_parent() -> None:
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL, 0, 0, 0)


def _become(request: Request) -> None:
    """Turn this forked process into one that the request describes, all but running the program."""
    os.setsid()
    for signal_number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(signal_number, signal.SIG_DFL)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed()  # Python's own generator seeds itself again after a fork


def _run(arguments: list[str]) -> NoReturn:
    """Run `program.py …` or, under mpirun, `-m mpi4py program.py …` as this process's program; end as it does."""
    try:
        if arguments[0] == "-m":
            sys.argv = arguments[1:]
            sys.path.insert(0, str(Path.cwd()))
            runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv = arguments
            sys.path.insert(0, str(Path(arguments[0]).parent))
            # Not by runpy.run_path: the program's module must stay in sys.modules until the end.
            module = types.ModuleType("__main__")
            module.__file__ = arguments[0]
            module.__dict__["__builtins__"] = builtins
            sys.modules["__main__"] = module
            exec(compile(Path(arguments[0]).read_bytes(), arguments[0], "exec"), module.__dict__)
    except Exception as error:
        trace = error.__traceback__
        while trace and trace.tb_frame.f_code.co_filename == __file__:
            trace = trace.tb_next  # the program's traceback begins with the program
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        sys.exit(1)
    sys.exit()


def _keep(names: Iterable[str]) -> None:
    """Let the interpreter end without taking these modules apart.

    To free their objects it would write to nearly all the memory that the forked processes share, and so copy it.
    """
    kept = [sys.modules.pop(name, None) for name in names]
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))


def main(listener: str, *modules: str) -> NoReturn:
    """Import the modules, then fork programs until the owner is gone."""
    variables, loaded = set(os.environ), set(sys.modules)
    for module in modules:
        with suppress(Exception):  # a program that needs it will say why it cannot be imported
            importlib.import_module(module)
    atexit.register(_keep, set(sys.modules) - loaded)  # before the program's own, so that it runs last
    warnings.simplefilter("ignore", DeprecationWarning)  # TensorFlow's and NumPy's idle threads are not needed
    gc.collect()
    gc.freeze()  # the collector of a forked process leaves these objects, and so their memory pages, alone
    set_by_imports = {name: value for name, value in os.environ.items() if name not in variables}
    request = _serve(socket.socket(fileno=int(listener)), set_by_imports)
    _become(request)
    _run(request["arguments"])


if __name__ == "__main__":
    main(*sys.argv[1:])
