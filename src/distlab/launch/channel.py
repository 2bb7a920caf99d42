"""A connection to `host_process`: requests go over the standard input of ssh or srun, reports come from its output."""

import json
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from distlab.launch.host_process import FRAME, SECONDS_BETWEEN_SIGNS

_LINES_KEPT = 5


class Channel:
    """One process, ssh or srun, and the host processes behind it: one behind ssh, one for each task behind srun.

    `said`: the last lines that came from ssh, srun or a shell's start-up file instead. `heard`: when each host process
    gave its last sign, by its number. `status`: the exit status of the process, None while it runs.
    """

    def __init__(
        self,
        process: "subprocess.Popen[str]",
        report: Callable[[int, dict[str, Any]], None],
        overhear: Callable[[str], None] = lambda line: None,
        closed: Callable[[int], None] = lambda status: None,
    ) -> None:
        """The functions are called in threads: for each message, each other line, and the end of the process."""
        self._process, self._report, self._overhear, self._closed = process, report, overhear, closed
        self._writing = threading.Lock()
        self.said: deque[str] = deque(maxlen=_LINES_KEPT)
        self.heard: dict[int, float] = {}
        self.status: int | None = None
        threading.Thread(target=self._read, daemon=True).start()

    def send(self, **request: object) -> None:
        """Send a request; without any it is a sign that the launcher is there."""
        with self._writing, suppress(OSError, ValueError):  # who follows the reports sees that the process has ended
            assert self._process.stdin
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()

    def silence(self) -> dict[int, float]:
        """For how many seconds each host process has given no sign."""
        now = time.monotonic()
        return {number: now - heard for number, heard in self.heard.items()}

    def _read(self) -> None:
        assert self._process.stdout
        pieces: dict[int, str] = {}
        for line in self._process.stdout:
            if not line.startswith(FRAME):
                self.said.append(line.rstrip("\n"))
                self._overhear(line.rstrip("\n"))
                continue
            number_text, sign, piece = line[len(FRAME) :].rstrip("\n").split(" ", 2)
            number = int(number_text)
            if not self.heard:  # before, srun has nobody to pass signs on to
                threading.Thread(target=self._give_signs, daemon=True).start()
            self.heard[number] = time.monotonic()
            text = pieces.pop(number, "") + piece
            if sign == "+":
                pieces[number] = text
            elif message := json.loads(text):
                self._report(number, message)
                self.heard[number] = time.monotonic()  # to pass it on may have taken a while
        self.status = self._process.wait()
        self._closed(self.status)

    def _give_signs(self) -> None:
        while self.status is None:
            self.send()
            time.sleep(SECONDS_BETWEEN_SIGNS)
