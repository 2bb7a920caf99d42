"""A keeper's looks at its sandbox: what memory, time and processes it uses, and whether that is too much."""

import os
import stat
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from course_tools.sandbox.confine import MIB, SandboxLimits
from course_tools.sandbox.meter import ENDED, Meter, Use
from course_tools.sandbox.socket_memory import SocketMemory

_LOOKS_OF_OTHER_KEEPERS = 10
_TICKS = os.sysconf("SC_CLK_TCK")
# Beyond a user's first 64 MiB (pipe-user-pages-soft), Linux gives a new pipe two pages.
_BYTES_OF_A_PIPE = 8192


class Gauge:
    """A keeper's looks at its sandbox, and what it writes into the student's meter."""

    def __init__(self, meter: Meter, number: int) -> None:
        """Sandbox `number` of the meter; `sockets` tells the memory of its sockets, as soon as that is known."""
        self.sockets: SocketMemory | None = None
        self._meter, self._number = meter, number
        self._processor = self._stalled = 0.0
        self._stalled_by_thread: dict[str, float] = {}
        self._looked = time.monotonic()
        self._looks_above_limit = 0
        self._in_sockets = 0

    def look(self, first: int, limits: SandboxLimits) -> str | None:
        """Write down what the sandbox of the process `first` uses; the reason if it is to end."""
        states = {process: state for process in _processes(first) if (state := _state(process)) is not None}
        alive = [process for process, state in states.items() if state.letter not in "ZX"]
        now = time.monotonic()
        self._processor = max(self._processor, sum(state.processor for state in states.values()))
        self._stalled += min(self._stalled_since(alive), now - self._looked)
        self._looked = now
        sizes = {process: _memory(process) for process in alive}
        outside = _memory_in_open_files(sizes) + self._memory_of_sockets()
        used = sum(map(sum, sizes.values())) + outside
        others = sum(use.memory for number, use in enumerate(self._meter.read()) if number != self._number)
        # What forked processes share is in the size of each: only if that is too much is it worth the longer look.
        if used + others > limits.memory:
            used = (
                sum(_own_share_of_memory(process, size.resident) + size.page_tables for process, size in sizes.items())
                + outside
            )
        self._meter.write(self._number, Use(used, self._processor, self._stalled, now))
        # The other keepers take the longer look too, but not at the same moment.
        self._looks_above_limit = self._looks_above_limit + 1 if used + others > limits.memory else 0
        if len(alive) > limits.processes:
            return f"it started more than {limits.processes} processes"
        if used > limits.memory or self._looks_above_limit >= _LOOKS_OF_OTHER_KEEPERS:
            return too_much_memory(limits)
        return None

    def end(self) -> None:
        """The sandbox uses nothing more."""
        self._meter.write(self._number, Use(0, self._processor, self._stalled, ENDED))

    def _memory_of_sockets(self) -> int:
        if self.sockets is not None:
            with suppress(OSError):  # they change while the kernel lists them
                self._in_sockets = self.sockets.read()
        return self._in_sockets

    def _stalled_since(self, processes: Iterable[Path]) -> float:
        """Seconds since the last look in which their threads waited for a processor, added up."""
        stalled = {}
        for process in processes:
            with suppress(OSError, ValueError, IndexError):
                for task in (process / "task").iterdir():
                    stalled[str(task)] = int((task / "schedstat").read_text().split()[1]) / 1e9
        before, self._stalled_by_thread = self._stalled_by_thread, stalled
        return sum(max(0.0, seconds - before.get(task, 0.0)) for task, seconds in stalled.items())


class _State(NamedTuple):
    """The letter that the kernel gives a process (Z: ended, and nobody has asked for it), its processor seconds."""

    letter: str
    processor: float


def _state(process: Path) -> _State | None:
    """None if it has ended."""
    with suppress(OSError, ValueError, IndexError):
        fields = (process / "stat").read_text(errors="replace").rpartition(")")[2].split()
        return _State(fields[0], sum(map(int, fields[11:15])) / _TICKS)  # with those of ended children
    return None


class _Memory(NamedTuple):
    """The bytes that a process has in memory, and those of the kernel's tables of them, which it shares with nobody."""

    resident: int
    page_tables: int


def _memory(process: Path) -> _Memory:
    """Nothing if it has ended."""
    kibibytes = {"VmRSS": 0, "VmPTE": 0}
    with suppress(OSError, ValueError, IndexError):
        for line in (process / "status").read_text(errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name in kibibytes:
                kibibytes[name] = int(value.split()[0])
    return _Memory(*(size * 1024 for size in kibibytes.values()))


def _memory_in_open_files(processes: Iterable[Path]) -> int:
    """The bytes of open pipes, and of open files without a name (memfd_create): memory, but in no process's size."""
    sizes = {}
    for process in processes:
        with suppress(OSError):
            for file in (process / "fd").iterdir():
                about = file.stat()
                if about.st_nlink == 0 and stat.S_ISREG(about.st_mode):
                    sizes[about.st_dev, about.st_ino] = about.st_blocks * 512
    return sum(sizes.values())


def _own_share_of_memory(process: Path, size: int) -> int:
    """What it has in memory, with what n processes share counted as an n-th; `size` for a process that hides it."""
    with suppress(OSError):
        for line in (process / "smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return size


def _processes(first: int) -> list[Path]:
    """The folders in /proc of the sandbox's processes: all of its own namespace, else the first one's descendants."""
    own = Path("/proc", str(first), "root", "proc")
    with suppress(OSError):
        if own.stat().st_dev != Path("/proc").stat().st_dev:
            return [process for process in own.iterdir() if process.name.isdigit()]
    processes, waiting = [], [first]
    while waiting:
        process = Path(f"/proc/{waiting.pop()}")
        processes.append(process)
        with suppress(OSError):
            for task in (process / "task").iterdir():
                waiting += map(int, (task / "children").read_text().split())
    return processes


def too_much_memory(limits: SandboxLimits) -> str:
    """Why a sandbox was ended that used more than all of the student's may."""
    return f"it used more than {limits.memory // MIB} MiB of memory"
