"""How long a student's code has worked, on a machine that may have other work too.

Two times are limited: the processor time of all the student's processes, and the time that passes while the grader
waits for an answer, without the time in which these processes, or the grader itself, wait for a processor that others
use. So a loaded machine uses up nobody's time, and neither a loop nor a sleep is endless. The time on the wall is
limited only far away; where that is reached, the machine was too busy to say anything about the student. Time in which
the grader was stopped, by Ctrl-Z or because the machine slept, is nobody's.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from course_tools.sandbox.meter import ENDED, Meter
from distlab.runtime.own_time import WatchedClock, own_delay

_TIMES_ON_THE_WALL = 10
_LEAST_ON_THE_WALL = 60.0
SECONDS_BETWEEN_LOOKS = 0.1


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
            wall, late = wall + self._clock.now() - self._since, late + own_delay() - self._late_before
        # What the keepers have not seen yet may turn out to be stalled: it does not count before.
        unseen = max((0.0, *(now - use.seen for use in uses if use.seen != ENDED)))
        self._passed = max(self._passed, wall - unseen - late - sum(use.stalled for use in uses))
        return Spent(sum(use.processor for use in uses), self._passed, wall)

    def allow(self, seconds: float) -> Allowance:
        """So much from now on."""
        return Allowance(seconds, self.spent())

    def waiting(self, check: Callable[[Spent], None]) -> Callable[[], float]:
        """Begin to count; the function calls `check`, and says after how many seconds to call it again."""
        self._since, self._late_before = self._clock.now(), own_delay()

        def look() -> float:
            check(self.spent())
            return SECONDS_BETWEEN_LOOKS

        return look

    def answered(self) -> Spent:
        """Stop counting."""
        if self._since is not None:
            self._waited += self._clock.now() - self._since
            self._late += own_delay() - self._late_before
            self._since = None
        return self.spent()
