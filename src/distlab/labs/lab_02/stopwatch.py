"""A clock in the judge's process, for work that a student's code is to time."""

import time
from dataclasses import dataclass

from distlab.labs.plain_data import Plain

WAITING, COMPUTING = "waiting", "computing"
WORK, WORKED, END = "work", "worked", "end"


@dataclass
class Timing:
    """Seconds of the work itself and of the whole call that times it; how often the work was done."""

    inside: float = 0.0
    outside: float = 0.0
    calls: int = 0


class Stopwatch:
    """Responds to who does the work: lets it wait, or tells it how long to compute; `timings` by kind of work."""

    def __init__(self, waits: float, computes: float) -> None:
        """Seconds of each."""
        self._waits, self._computes = waits, computes
        self.timings = {WAITING: Timing(), COMPUTING: Timing()}
        self._kind, self._began, self._work_began = WAITING, 0.0, 0.0

    def __call__(self, event: Plain) -> float:
        """How long to compute now; `event` is a kind of work at the start of a call, or WORK, WORKED, END.

        The moments are taken here, so that those of WORK and WORKED lie between a student's looks at the clock, and
        those of the call around them.
        """
        now = time.perf_counter()
        if not isinstance(event, str):  # an array has no answer to ==
            return 0.0
        timing = self.timings[self._kind]
        if event in (WAITING, COMPUTING):
            self._kind, self._began = event, now
        elif event == WORK:
            self._work_began = now
            if self._kind == COMPUTING:
                return self._computes
            time.sleep(self._waits)
        elif event == WORKED:
            timing.inside += now - self._work_began
            timing.calls += 1
        elif event == END:
            timing.outside = now - self._began
        return 0.0
