"""The process that the launcher starts on each host of a job, or for each task of Slurm: runs its programs there.

    python -I -S host_process.py

reads requests from standard input and writes reports to standard output; ssh or srun connect both to the launcher (see
`channel`). Every message is JSON; reports come in pieces, since srun mixes the lines of its tasks when they are long.
All that it has started ends when the launcher says so, when the connection closes, when nothing has come over it for
SECONDS_OF_SILENCE, and when this process is killed. Linux only; standard library only, so that it starts at once.
"""

import ctypes
import json
import os
import pwd
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NoReturn

if __name__ == "__main__":  # -I leaves this folder out of the search path
    sys.path.insert(0, str(Path(__file__).parent))
    import ports  # type: ignore[import-not-found]
    import rank_process  # type: ignore[import-not-found]
else:
    from distlab.launch import ports, rank_process

FRAME = "@distlab "
LONGEST_PIECE = 900  # srun passes lines of at most 1024 bytes as a whole
SECONDS_BETWEEN_SIGNS = 1.0
SECONDS_OF_SILENCE = 15.0
"""After that long without a sign of the other side, each side gives it up."""

_SECONDS_BETWEEN_LOOKS, _SECONDS_TO_END, _SECONDS_FOR_REST = 0.5, 2.0, 2.0
_LONGEST_LINE = 65_536
_SHARED = "; it must be where all hosts see it"
# What an ssh server says about the connection is nothing of the program's.
_OF_CONNECTION = ("SSH_CLIENT", "SSH_CONNECTION", "SSH_TTY")


class CannotStart(Exception):
    """This host lacks something; the message is the rest of a sentence that begins with its name."""


class HostProcess:
    """Carries out requests until the end of the job, or of its only program."""

    def __init__(self, folder: Path) -> None:
        """`folder` is this host's place for temporary files."""
        self._folder = folder
        self._number = int(os.environ.get("SLURM_PROCID", "0"))
        self._writing, self._ending = threading.Lock(), threading.Event()
        self._programs: dict[str, subprocess.Popen[str]] = {}
        self._unconnected: dict[str, tuple[int, str | None]] = {}
        self._has_one_program, self._own_status = False, 128 + signal.SIGTERM

    def serve(self) -> NoReturn:
        """Take requests until the end; does not return."""
        signal.signal(signal.SIGTERM, lambda *_: self._end(self._own_status))
        for work in (self._give_signs, self._look_for_connections):
            threading.Thread(target=work, daemon=True).start()
        pending = b""
        while select.select([0], [], [], SECONDS_OF_SILENCE)[0] and (data := os.read(0, 65_536)):
            *lines, pending = (pending + data).split(b"\n")
            for line in lines:
                if request := json.loads(line):
                    self._carry_out(request)
        self._end(1)

    def _carry_out(self, request: dict[str, Any]) -> None:
        try:
            match request:
                case {"prepare": settings}:
                    self._report(ready=self._prepare(settings))
                case {"start": name, "command": command, "environment": environment, "address": address}:
                    name = name.replace("{rank}", str(self._number))
                    program = [sys.executable, "-I", "-S", rank_process.__file__, "-", *command]
                    self._unconnected[name] = self._start(name, program, environment), address
                case {"shell": name, "text": text}:
                    # Both paths name the folder of a job; what was written for the launcher's is for this host's.
                    text = text.replace(request["folder"], str(self._folder))
                    self._start(name, [pwd.getpwuid(os.getuid()).pw_shell or "/bin/sh", "-c", text], {})
                case {"kill": name}:
                    if name in self._programs:
                        self._programs[name].terminate()
                case {"end": _}:
                    self._end(0)
        except CannotStart as error:
            self._report(error=str(error), host=host_name())
            if self._has_one_program:
                self._end(1)

    def _prepare(self, settings: dict[str, Any]) -> dict[str, Any]:
        """Become what the programs are to inherit, and say what this host has; raises CannotStart."""
        self._has_one_program = settings["has_one_program"]
        try:
            os.chdir(settings["folder"])
        except OSError as error:
            raise CannotStart(f"does not have the working folder {settings['folder']}{_SHARED}") from error
        for file in settings["files"]:
            if not Path(file).exists():
                raise CannotStart(f"does not have the file {file}{_SHARED}")
        for host in settings["hosts"]:
            try:
                socket.getaddrinfo(host, None)
            except OSError as error:
                raise CannotStart(f"does not know the address of {host}") from error
        for name in _OF_CONNECTION:
            os.environ.pop(name, None)
        os.environ.update(settings["environment"])
        os.environ[rank_process.FOLDER] = str(self._folder)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(self._folder / rank_process.SOCKET_NAME))
        listener.listen(256)
        threading.Thread(target=self._accept, args=[listener], daemon=True).start()
        return {
            "host": host_name(),
            "cores": len(os.sched_getaffinity(0)),
            "gpus": sorted(file.name[6:] for file in Path("/dev").glob("nvidia[0-9]*")),
            "ports": ports.free_ports(settings["ports"]),
            "job": os.environ.get("SLURM_JOB_ID"),
            "step": os.environ.get("SLURM_STEP_ID"),
        }

    def _start(self, name: str, command: list[str], environment: dict[str, str]) -> int:
        try:
            process = subprocess.Popen(
                command,
                env=os.environ | environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=True,
            )
        except OSError as error:
            raise CannotStart(f"cannot start {command[0]} ({error.strerror})") from error
        self._programs[name] = process
        self._report(name=name, pid=process.pid)
        assert process.stdout
        reader = threading.Thread(target=self._read, args=[name, process.stdout], daemon=True)
        reader.start()
        threading.Thread(target=self._wait, args=[name, process, reader], daemon=True).start()
        return process.pid

    def _wait(self, name: str, process: "subprocess.Popen[str]", reader: threading.Thread) -> None:
        status = process.wait()
        reader.join(_SECONDS_FOR_REST)  # what the program left behind may hold the pipe open
        self._ended(name, status, was_asked=False)
        if self._has_one_program:
            self._own_status = status if status >= 0 else 128 - status
            os.kill(os.getpid(), signal.SIGTERM)

    def _accept(self, listener: socket.socket) -> None:
        """Take the ranks that mpirun or another program starts on this host."""
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=self._follow_rank, args=[connection], daemon=True).start()

    def _follow_rank(self, connection: socket.socket) -> None:
        with connection, connection.makefile(errors="replace") as lines:
            number, pid, _ = lines.readline().split()
            name = f"rank {number}"
            self._report(name=name, pid=int(pid))
            self._unconnected[name] = int(pid), None
            end = self._read(name, lines)
            self._ended(name, end and end.status, bool(end and end.was_asked))

    def _read(self, name: str, lines: IO[str]) -> rank_process.RankEnd | None:
        """Report the lines until their end or until one of them tells the rank's end, which is returned."""
        while line := lines.readline(_LONGEST_LINE):
            text, mark, end = line.rstrip("\n").partition(rank_process.STATUS)
            if text or not mark:
                self._report(name=name, line=text)
            if mark:
                return rank_process.RankEnd.from_text(end)
        return None

    def _ended(self, name: str, status: int | None, was_asked: bool) -> None:
        if self._ending.is_set():
            return
        self._unconnected.pop(name, None)
        result = self._folder / rank_process.RESULT_NAME
        if status == 0 and result.is_file():
            self._report(result=result.read_bytes().decode(errors="replace"))
        self._report(name=name, status=status, was_asked=was_asked)

    def _look_for_connections(self) -> None:
        while True:
            time.sleep(_SECONDS_BETWEEN_LOOKS)
            for name, (pid, address) in list(self._unconnected.items()):
                if ports.is_open(address) if address else any(map(has_connection, [pid, *descendants(pid)])):
                    self._unconnected.pop(name, None)
                    self._report(name=name, connected=True)

    def _give_signs(self) -> None:
        while True:
            self._report()
            time.sleep(SECONDS_BETWEEN_SIGNS)

    def _report(self, **message: object) -> None:
        text = json.dumps(message)  # ASCII, so that a piece has as many bytes as characters
        pieces = [text[start : start + LONGEST_PIECE] for start in range(0, len(text), LONGEST_PIECE)]
        frames = [f"{FRAME}{self._number} + {piece}\n" for piece in pieces[:-1]]
        data = memoryview("".join([*frames, f"{FRAME}{self._number} . {pieces[-1]}\n"]).encode())
        with self._writing, suppress(OSError):  # the connection may be closed; who reads requests sees it
            while data:
                data = data[os.write(1, data) :]

    def _end(self, status: int) -> NoReturn:
        """End whatever this process has started, by SIGTERM, then by SIGKILL; then this process."""
        self._ending.set()
        for pid in descendants(os.getpid()):
            with suppress(OSError):
                os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + _SECONDS_TO_END
        while rank_process.children() and time.monotonic() < deadline:
            with suppress(OSError):
                os.waitpid(-1, os.WNOHANG)
            time.sleep(0.02)
        rank_process.kill_children()
        shutil.rmtree(self._folder, ignore_errors=True)
        # Apart: over a cut link it would wait for ever.
        last_word = threading.Thread(target=lambda: self._report(over=True), daemon=True)
        last_word.start()
        last_word.join(1)
        os._exit(status)


def host_name() -> str:
    """This host's, as Slurm calls it under Slurm."""
    return os.environ.get("SLURMD_NODENAME") or socket.gethostname()


def descendants(pid: int) -> list[int]:
    """The processes that come from this one."""
    known, waiting = list[int](), [pid]
    while waiting:
        for file in Path(f"/proc/{waiting.pop()}/task").glob("*/children"):
            with suppress(OSError):
                children = list(map(int, file.read_text().split()))
                known += children
                waiting += children
    return known


def has_connection(pid: int) -> bool:
    """Whether the process has a socket of the internet's protocols."""
    own = set()
    for file in Path(f"/proc/{pid}/fd").glob("*"):
        with suppress(OSError):
            own.add(str(file.readlink()))
    for protocol in ("tcp", "tcp6", "udp", "udp6"):
        with suppress(OSError):
            lines = Path(f"/proc/{pid}/net/{protocol}").read_text().splitlines()[1:]
            if own & {f"socket:[{line.split()[9]}]" for line in lines}:
                return True
    return False


def main() -> int:
    """Let a process of its own do the work, and end what that has started if it is killed; its exit status."""
    folder = Path(tempfile.mkdtemp(prefix="distlab-", dir=rank_process.folder_for_sockets()))
    rank_process.adopt()
    own_pid = os.getpid()
    working = os.fork()
    if working == 0:
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGTERM, 0, 0, 0)
        rank_process.adopt()
        if os.getppid() == own_pid:
            HostProcess(folder).serve()
        os._exit(1)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: os.kill(working, signal.SIGTERM))
    _, status = os.waitpid(working, 0)
    rank_process.kill_children()
    shutil.rmtree(folder, ignore_errors=True)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
