"""How the notebooks of `make execute` are getting on: one live line on a terminal, else a line at each quarter."""

import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from course_tools.runner_child import SKIPPED, NotebookOutcome


class _Console(Console):
    """A console that falls silent when nobody reads it any more; rich's own would end the program."""

    def on_broken_pipe(self) -> None:
        """Go on without a word."""
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


class Progress:
    """The notebooks that run and those that have ended; use it in a `with` block. Any thread may report."""

    def __init__(self, total: int, console: Console | None = None) -> None:
        """For `total` notebooks."""
        # A kernel sets FORCE_COLOR for its programs, which makes no terminal of a file.
        is_terminal = sys.stdout is not None and sys.stdout.isatty()
        self._console = console or _Console(highlight=False, soft_wrap=True, force_terminal=is_terminal)
        self._total, self._done = total, 0
        self._running: dict[str, tuple[int, int]] = {}
        self._lock = threading.Lock()
        self._live = Live(console=self._console, transient=True, auto_refresh=False, get_renderable=self._line)

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._live.stop()

    def cell(self, name: str, number: int, total: int) -> None:
        """Notebook `name` has started its cell `number` of `total`."""
        with self._lock:
            before, _ = self._running.get(name, (0, total))
            self._running[name] = (number, total)
            if self._console.is_terminal:
                self._live.refresh()
            elif before * 4 // total != number * 4 // total or before == 0:
                self._print(f"  {name}: cell {number} of {total}")

    def finished(self, name: str, outcome: NotebookOutcome) -> None:
        """Notebook `name` has ended."""
        with self._lock:
            self._running.pop(name, None)
            self._done += 1
            used = f"{outcome.seconds:.0f} s, {outcome.peak_memory_mib:,.0f} MiB"
            self._print(f"{name}: {outcome.status}, {outcome.error if outcome.status == SKIPPED else used}")

    def _print(self, line: str) -> None:
        with suppress(OSError):  # where the output goes the disk may be full
            self._console.print(line)

    def _line(self) -> Text:
        line = self._with_names(str)
        if line.cell_len > self._console.width:  # only the chapters' numbers
            line = self._with_names(lambda name: name.partition("_")[0])
        return line

    def _with_names(self, label: Callable[[str], str]) -> Text:
        running = ", ".join(f"{label(name)} cell {number}/{total}" for name, (number, total) in self._running.items())
        return Text(f"{self._done}/{self._total} done · {running}", no_wrap=True, overflow="ellipsis")
