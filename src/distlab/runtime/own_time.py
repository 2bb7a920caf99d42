"""The time that passes for a process: without that in which its threads wait for a processor that others use, or in
which it stands still.
"""

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
    """A clock that stands still while nobody looks at it for long: then its process was stopped."""

    def __init__(self) -> None:
        """It starts now."""
        self._looked, self._delay = time.monotonic(), own_delay()
        self._missed = 0.0

    def now(self) -> float:
        """Seconds, as of `time.monotonic()` without the time in which this was not called for two seconds and more.

        Time in which this thread waited for a processor is not taken for a stop.
        """
        now, delay = time.monotonic(), own_delay()
        gap = now - self._looked - (delay - self._delay)
        if gap > _MOST_SECONDS_BETWEEN_LOOKS:
            self._missed += gap
        self._looked, self._delay = now, delay
        return now - self._missed


def own_delay() -> float:
    """Seconds that this thread has waited for a processor; 0 where the system does not say."""
    with suppress(OSError, ValueError, IndexError):
        return _delay(Path("/proc/thread-self"))
    return 0.0


def _delays() -> dict[str, float]:
    """Seconds that each thread of this process has waited for a processor."""
    delays = {}
    with suppress(OSError):
        for thread in Path("/proc/self/task").iterdir():
            with suppress(OSError, ValueError, IndexError):
                delays[thread.name] = _delay(thread)
    return delays


def _delay(thread: Path) -> float:
    return int((thread / "schedstat").read_text().split()[1]) / 1e9
