"""The time that passes for a process: without that in which it waits for a processor."""

import threading
import time
from contextlib import suppress
from pathlib import Path


class OwnTime:
    """Counts from when it is made; where the system does not say who waits (Linux does), all time counts."""

    def __init__(self) -> None:
        """Begin to count."""
        self._lock = threading.Lock()
        self._passed, self._looked, self._delays = 0.0, time.monotonic(), _delays()

    def passed(self) -> float:
        """Seconds until now."""
        with self._lock:
            now, delays = time.monotonic(), _delays()
            delayed = sum(max(0.0, seconds - self._delays.get(thread, 0.0)) for thread, seconds in delays.items())
            self._passed += max(0.0, now - self._looked - delayed)
            self._looked, self._delays = now, delays
            return self._passed


def _delays() -> dict[str, float]:
    """Seconds that each thread of this process has waited for a processor, by the thread's number."""
    delays = {}
    with suppress(OSError):
        for thread in Path("/proc/self/task").iterdir():
            with suppress(OSError, ValueError, IndexError):
                delays[thread.name] = int((thread / "schedstat").read_text().split()[1]) / 1e9
    return delays
