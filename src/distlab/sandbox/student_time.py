"""How long a student's code has worked, on a machine that may have other work too.

Two times are limited: the processor time of all the student's processes, and the time that passes while the grader
waits for an answer, without the time in which these processes, or the grader itself, wait for a processor that others
use. So a loaded machine uses up nobody's time, and neither a loop nor a sleep is endless. The time on the wall is
limited only far away; where that is reached, the machine was too busy to say anything about the student. Time in which
the grader was stopped, by Ctrl-Z or because the machine slept, is nobody's.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from distlab.sandbox.meter import ENDED, Meter

_TIMES_ON_THE_WALL = 10
_LEAST_ON_THE_WALL = 60.0
SECONDS_BETWEEN_LOOKS = 0.1
_MOST_SECONDS_BETWEEN_LOOKS = 2.0


class Spent(NamedTuple):
    """Seconds: of processors, passed for the student, on the wall."""

    processor: float
    passed: float
    wall: float


@dataclass
class Allowance:
    """Seconds that a student's code may take since `start`."""

    seconds: float
    start: Spent

    def used(self, spent: Spent) -> float:
        """Seconds of processors, or that have passed, whichever are more."""
        return max(spent.processor - self.start.processor, spent.passed - self.start.passed)

    def is_used_up(self, spent: Spent) -> bool:
        """By processor time, or because so much has passed."""
        return self.used(spent) >= self.seconds

    def is_starved(self, spent: Spent) -> bool:
        """Whether the far limit is reached."""
        return spent.wall - self.start.wall >= max(_TIMES_ON_THE_WALL * self.seconds, _LEAST_ON_THE_WALL)


class WatchedClock:
    """A clock that stands still while nobody looks at it for long: then its process was stopped."""

    def __init__(self) -> None:
        """It starts now."""
        self._looked, self._delay = time.monotonic(), _own_delay()
        self._missed = 0.0

    def now(self) -> float:
        """Seconds, as of `time.monotonic()` without the time in which this was not called for two seconds and more.

        Time in which this thread waited for a processor is not taken for a stop.
        """
        now, delay = time.monotonic(), _own_delay()
        gap = now - self._looked - (delay - self._delay)
        if gap > _MOST_SECONDS_BETWEEN_LOOKS:
            self._missed += gap
        self._looked, self._delay = now, delay
        return now - self._missed


@dataclass
class StudentTime:
    """Counts while the grader waits for one of the student's sandboxes."""

    meter: Meter = field(default_factory=Meter)
    _clock: WatchedClock = field(default_factory=WatchedClock)
    _waited: float = 0.0
    _since: float | None = None
    _passed: float = 0.0
    _late: float = 0.0
    _late_before: float = 0.0

    def spent(self) -> Spent:
        """Until now, as far as the keepers have looked."""
        now, uses = time.monotonic(), self.meter.read()
        wall, late = self._waited, self._late
        if self._since is not None:
            wall, late = wall + self._clock.now() - self._since, late + _own_delay() - self._late_before
        # What the keepers have not seen yet may turn out to be stalled: it does not count before.
        unseen = max((0.0, *(now - use.seen for use in uses if use.seen != ENDED)))
        self._passed = max(self._passed, wall - unseen - late - sum(use.stalled for use in uses))
        return Spent(sum(use.processor for use in uses), self._passed, wall)

    def allow(self, seconds: float) -> Allowance:
        """So much from now on."""
        return Allowance(seconds, self.spent())

    def waiting(self, check: Callable[[Spent], None]) -> Callable[[], float]:
        """Begin to count; the function calls `check`, and says after how many seconds to call it again."""
        self._since, self._late_before = self._clock.now(), _own_delay()

        def look() -> float:
            check(self.spent())
            return SECONDS_BETWEEN_LOOKS

        return look

    def answered(self) -> Spent:
        """Stop counting."""
        if self._since is not None:
            self._waited += self._clock.now() - self._since
            self._late += _own_delay() - self._late_before
            self._since = None
        return self.spent()


def _own_delay() -> float:
    """Seconds that this thread has waited for a processor; 0 where the system does not say."""
    with suppress(OSError, ValueError, IndexError):
        return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) / 1e9
    return 0.0
