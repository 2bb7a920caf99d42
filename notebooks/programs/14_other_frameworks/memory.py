"""The most memory that a process has used; the standard library alone, so that every framework's program can use it."""

import resource
import sys
from pathlib import Path


def peak_bytes() -> int:
    """Bytes of memory that this process had at most, its libraries included."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    for line in lines:
        if line.startswith("VmHWM:"):  # "high water mark", in KiB
            return 1024 * int(line.split()[1])
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
