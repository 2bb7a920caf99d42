"""The time that passes for a process: without that in which it waits for a processor, or stands still."""

import threading
import time
from contextlib import suppress
from pathlib import Path

_MOST_SECONDS_BETWEEN_LOOKS = 2.0


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


class WatchedClock:
    """A clock that stands still while nobody looks at it for two seconds and more: then its process was stopped."""

    def __init__(self) -> None:
        """It starts now."""
        self._looked, self._missed = time.monotonic(), 0.0

    def now(self) -> float:
        """Seconds, as of `time.monotonic()` without the time in which the process stood still."""
        now = time.monotonic()
        if now - self._looked > _MOST_SECONDS_BETWEEN_LOOKS:
            self._missed += now - self._looked
        self._looked = now
        return now - self._missed


def _delays() -> dict[str, float]:
    """Seconds that each thread of this process has waited for a processor, by the thread's number."""
    delays = {}
    with suppress(OSError):
        for thread in Path("/proc/self/task").iterdir():
            with suppress(OSError, ValueError, IndexError):
                delays[thread.name] = int((thread / "schedstat").read_text().split()[1]) / 1e9
    return delays
