"""What lab 13 works on: the names of illnesses, and the logs of six sick jobs."""

from itertools import groupby

import numpy as np
from lab_13 import jobs

ILLNESSES = jobs.ILLNESSES
LOGS = {letter: job.log for letter, job in jobs.drawn_jobs(np.random.default_rng(jobs.SEED), variant=0).items()}
"""By letter; a log is a list of dictionaries, one for each event."""


def described(letter: str) -> str:
    """The log of a job in words."""
    return f"job {letter}\n{in_lines(LOGS[letter])}"


def in_lines(log: list[jobs.Event]) -> str:
    """A log, one line per event; the events of all workers in one step share a line."""
    lines: list[str] = []
    for (event, step), group in groupby(log, key=lambda event: (event["event"], event.get("step"))):
        own = list(group)
        lines += [_step_in_words(own, step)] if event == "step" else map(jobs.in_words, own)
    return "\n".join(lines)


def _step_in_words(events: list[jobs.Event], step: object) -> str:
    first, by_worker = events[0], sorted(events, key=lambda event: int(str(event["worker"])))
    times = [
        "+".join(f"{1000 * float(str(event[name])):.0f}" for name in ("computing", "waiting")) for event in by_worker
    ]
    pairs = "  ".join(f"{event['worker']}: {own:<7}" for event, own in zip(by_worker, times, strict=True))
    return f"{first['second']:>7} s  step {step:<4} {first['images']} images, ms  {pairs}".rstrip()
