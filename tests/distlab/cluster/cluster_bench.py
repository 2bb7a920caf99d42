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
# With the sentence that a user would get.
NEEDS_CLUSTER = pytest.mark.skipif(cluster.missing() is not None, reason=str(cluster.missing()))


def until(condition: Callable[[], object], what: str, seconds: float = SECONDS) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"after {seconds} s: {what}"
        time.sleep(0.2)  # to ask Slurm costs processor time, which the jobs need


def lines_of_ranks(output: str) -> list[str]:
    """What the ranks printed, sorted.

    mpirun adds a warning where ssh is quicker than its own book-keeping; srun says when it waits and tries again.
    """
    return sorted(line for line in output.splitlines() if "plm:rsh" not in line and not line.startswith("srun: "))


def command_line(process: psutil.Process) -> list[str]:
    """[] of a process that has ended."""
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def network_of(process: int | str = "self") -> str:
    """The network namespace of a process; nothing of one that has ended."""
    try:
        return str(Path(f"/proc/{process}/ns/net").readlink())
    except OSError:
        return ""


@dataclass
class Bench:
    """Where tests start clusters: whatever they start carries the mark."""

    cache: Path
    mark: str

    def networks(self) -> set[str]:
        """The network namespaces of the clusters alone."""
        return {network_of(process.pid) for process in processes.alive(self.mark)} - {"", network_of()}

    def processes(self, name: str = "") -> list[psutil.Process]:
        """What runs of the clusters and has that name, or any; sshd clears its environment, but not where it is."""
        networks = self.networks()
        marked = {process.pid for process in processes.alive(self.mark)}
        both = [p for p in psutil.process_iter(["name"]) if p.pid in marked or network_of(p.pid) in networks]
        return [process for process in both if name in ("", process.info["name"])]

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
