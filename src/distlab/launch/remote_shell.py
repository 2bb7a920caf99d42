"""Takes the place of ssh for mpirun and horovodrun: what they start on a host goes over the launcher's connection.

    python -I -S remote_shell.py SOCKET [OPTIONS OF SSH] HOST COMMAND...

So it ends with everything else there. The launcher listens at SOCKET (`ShellServer`). Standard library only, so that it
starts at once.
"""

import json
import queue
import shlex
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

NAME = "ssh"
_OPTIONS_WITH_VALUE = "BbcDEeFIiJLlmOopQRSWw"
_FAILED = 255


class Shells(Protocol):
    """Who runs shells on hosts."""

    def start_shell(self, host: str, text: str, folder: str, take: Callable[[dict[str, Any]], None]) -> str | None:
        """Let a host's shell run a text; its name, None for no such host."""

    def end_shell(self, host: str, name: str) -> None:
        """End it, if it has not ended."""


class ShellServer:
    """The launcher's end: passes each command on to its host, and what it prints and its exit status back."""

    def __init__(self, shells: Shells, folder: Path) -> None:
        """`folder` is that of the job; `folder`/bin/ssh is what is to be found instead of ssh."""
        self._shells, self._folder = shells, folder
        self.programs = folder / "bin"
        self.programs.mkdir()
        path = folder / "shells"
        words = [sys.executable, "-I", "-S", __file__, str(path)]
        (self.programs / NAME).write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
        (self.programs / NAME).chmod(0o755)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen(256)
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Take no more commands."""
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=[connection], daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rw") as client:
            host, text = json.loads(client.readline())
            messages: queue.Queue[dict[str, Any]] = queue.Queue()
            name = self._shells.start_shell(host, text, str(self._folder), messages.put)
            if name is None:
                messages.put({"line": f"{host} is no host of this job"})
                messages.put({"status": _FAILED})
            # Nothing more comes from the client but its end.
            threading.Thread(target=self._watch, args=[client, messages], daemon=True).start()
            while message := messages.get():
                with suppress(OSError):
                    client.write(json.dumps(message) + "\n")
                    client.flush()
                if "status" in message:
                    return
            if name:
                self._shells.end_shell(host, name)

    @staticmethod
    def _watch(client: Any, messages: "queue.Queue[dict[str, Any]]") -> None:
        with suppress(OSError, ValueError):
            client.readline()
        messages.put({})


def parse(arguments: list[str]) -> tuple[str, str]:
    """The host and the command of an ssh command line."""
    waiting = list(arguments)
    host = None
    while waiting:
        word = waiting[0]
        if word.startswith("-") and len(word) > 1:
            waiting.pop(0)
            if len(word) == 2 and word[1] in _OPTIONS_WITH_VALUE:
                waiting.pop(0)
        elif host is None:  # ssh takes options after the host, too
            host = waiting.pop(0)
        else:
            break
    return host or "", " ".join(waiting)


def main() -> int:
    """Let the launcher run the command; its exit status as a shell gives it."""
    path, *arguments = sys.argv[1:]
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        with connection.makefile("rw") as server:
            server.write(json.dumps(parse(arguments)) + "\n")
            server.flush()
            for line in server:
                message = json.loads(line)
                if "line" in message:
                    print(message["line"], flush=True)
                if "status" in message:
                    status = message["status"]
                    return _FAILED if status is None else status if status >= 0 else 128 - status
    return _FAILED


if __name__ == "__main__":
    sys.exit(main())
