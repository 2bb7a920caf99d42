"""Where tests start clusters, and a count of all that these take."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from distlab import cluster
from distlab.runtime import processes

SECONDS = 300.0
NAMESPACES = ("net", "mnt", "pid", "uts", "ipc", "user")
# With the sentence that a user would get.
NEEDS_CLUSTER = pytest.mark.skipif(cluster.missing() is not None, reason=str(cluster.missing()))


def until(condition: Callable[[], object], what: str, seconds: float = SECONDS) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"after {seconds} s: {what}"
        time.sleep(0.05)


def lines_of_ranks(output: str) -> list[str]:
    """What the ranks printed, sorted.

    mpirun adds a warning where ssh is quicker than its own book-keeping; srun says when it waits and tries again.
    """
    return sorted(line for line in output.splitlines() if "plm:rsh" not in line and not line.startswith("srun: "))


def own_namespaces(process: int | str = "self") -> set[str]:
    """The namespaces that a process is in."""
    return {str((Path("/proc") / str(process) / "ns" / kind).readlink()) for kind in NAMESPACES}


def used_namespaces() -> set[str]:
    used = set()
    for process in psutil.pids():
        try:
            used |= own_namespaces(process)
        except OSError:  # it has ended
            continue
    return used


def command_line(process: psutil.Process) -> list[str]:
    """[] of a process that has ended."""
    try:
        return process.cmdline()
    except psutil.Error:
        return []


@dataclass
class Bench:
    """Where tests start clusters: whatever they start carries the mark."""

    cache: Path
    mark: str

    def processes(self) -> dict[str, list[psutil.Process]]:
        """What runs of the clusters, by name; sshd clears its environment, but not where it is."""
        namespaces = self.namespaces()
        marked = {process.pid for process in processes.alive(self.mark)}
        by_name: dict[str, list[psutil.Process]] = {}
        for process in psutil.process_iter():
            try:
                if process.pid in marked or own_namespaces(process.pid) & namespaces:
                    by_name.setdefault(process.name(), []).append(process)
            except (psutil.Error, OSError):  # it has ended
                continue
        return by_name

    def namespaces(self) -> set[str]:
        """Those of the clusters alone."""
        own = set()
        for process in processes.alive(self.mark):
            try:
                own |= own_namespaces(process.pid)
            except OSError:  # it has ended
                continue
        return own - own_namespaces()

    def traces(self) -> dict[str, object]:
        """All that a cluster could leave on the machine besides processes and namespaces."""
        folders = [self.cache, Path("/etc/slurm"), Path("/run/netns"), Path("/run/sshd"), Path("/run/munge")]
        return {
            "mounts": sorted(Path("/proc/self/mountinfo").read_text().splitlines()),
            "files": sorted(str(path) for folder in folders for path in [folder, *folder.rglob("*")] if path.exists()),
            "interfaces": sorted(path.name for path in Path("/sys/class/net").iterdir()),
            "hosts": Path("/etc/hosts").read_text(),
            "host name": os.uname().nodename,
        }
