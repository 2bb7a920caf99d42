"""What lab 13 works on: the names of illnesses, and the logs of six sick jobs."""

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
    lines = []
    for place, event in enumerate(log):
        if event["event"] != "step":
            lines.append(jobs.in_words(event))
        elif log[place - 1].get("step") != event["step"] or log[place - 1]["event"] != "step":
            lines.append(_step_in_words(log[place:], event["step"]))
    return "\n".join(lines)


def _step_in_words(log: list[jobs.Event], step: object) -> str:
    times: dict[int, list[str]] = {}
    for event in log:
        if (event["event"], event.get("step")) != ("step", step):
            break
        seconds = (float(str(event[name])) for name in ("computing", "waiting"))
        times[int(str(event["worker"]))] = [f"{1000 * second:.0f}" for second in seconds]
    pairs = "  ".join(f"{worker}: {'+'.join(times[worker]):<7}" for worker in sorted(times))
    return f"{log[0]['second']:>7} s  step {step:<4} {log[0]['images']} images, ms  {pairs}".rstrip()
