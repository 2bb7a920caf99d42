"""How often a job should save: an exercise of lab 13 and its judge."""

import math
from typing import NamedTuple

import numpy as np
from lab_13.hints import Lab13Hint

from distlab.labs.answer import Answer
from distlab.labs.number_judge import Expected, Mistakes, NumberJudge, number
from distlab.labs.plain_data import Plain
from distlab.labs.verdict import AnyHint, Verdict

NAMES = ("between faults", "interval", "steps", "lost")
DAY = 24 * 3600.0


class SavedJob(NamedTuple):
    """Workers, the days between two faults of one of them, the seconds of a save and of a step."""

    workers: int
    days: float
    save: float
    step: float

    def __str__(self) -> str:
        return f"{self.workers} workers, {self.days:g} days, a save of {self.save:g} s, steps of {self.step:g} s"


EXAMPLE = SavedJob(500, 100.0, 30.0, 2.0)


def young_interval(save: float, between_faults: float) -> float:
    """The seconds between two saves with which the least time is lost (Young 1974), for a save that is short."""
    return math.sqrt(2 * save * between_faults)


def plan(workers: int, days: float, save: float, step: float) -> dict[str, float]:
    """The seconds between faults of the job, Young's interval in seconds and in steps, and the share of time lost."""
    between_faults = days * DAY / workers
    interval = young_interval(save, between_faults)
    lost = save / interval + interval / (2 * between_faults)
    return dict(zip(NAMES, (between_faults, interval, float(round(interval / step)), lost), strict=True))


def _drawn(generator: np.random.Generator, part_of_step: float, few: bool = False) -> SavedJob:
    """A job whose interval is a number of steps, few or many, and this part of a step more."""
    workers, days = int(generator.integers(100, 900)), float(generator.integers(50, 400))
    save = float(generator.integers(10, 90))
    steps = int(generator.integers(*(3, 8) if few else (80, 400))) + part_of_step
    return SavedJob(workers, days, save, young_interval(save, days * DAY / workers) / steps)


def judge_plan(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A quarter of the points for each number."""
    judge = NumberJudge("plan", NAMES)
    for job in (EXAMPLE, _drawn(generator, 0.3), _drawn(generator, 0.8), _drawn(generator, 0.4, few=True)):
        expected = {
            name: Expected(value, _mistakes(job)[name], _otherwise(job)[name]) for name, value in plan(*job).items()
        }
        numbers = answer.call("plan", *job)
        if problem := judge.compare(numbers, expected, str(job)):
            return problem
        judge.follow(numbers, _following(numbers, job))
    return judge.verdict()


def _following(numbers: Plain, job: SavedJob) -> dict[str, tuple[str, float | None]]:
    """For each number but the first: that from which it follows, and what follows from the answer's own."""
    assert isinstance(numbers, dict)
    between, interval = (number(numbers[name]) for name in NAMES[:2])
    if not between or not interval or not 0 < min(between, interval) <= max(between, interval) < math.inf:
        return {}
    return {
        "interval": ("between faults", young_interval(job.save, between)),
        "steps": ("interval", float(round(interval / job.step))),
        "lost": ("interval", job.save / interval + interval / (2 * between)),
    }


def _otherwise(job: SavedJob) -> dict[str, AnyHint]:
    return {
        "between faults": Lab13Hint.BETWEEN_OTHERWISE.says(count=job.workers),
        "interval": Lab13Hint.INTERVAL_OTHERWISE,
        "steps": Lab13Hint.STEPS_OTHERWISE,
        "lost": Lab13Hint.LOST_OTHERWISE,
    }


def _mistakes(job: SavedJob) -> dict[str, Mistakes]:
    between, interval, steps, lost = plan(*job).values()
    rounded = max(steps, 1.0) * job.step
    of_one = job.days * DAY
    return {
        "between faults": [
            (of_one, Lab13Hint.ONE_WORKER.says(count=job.workers)),
            (of_one * job.workers, Lab13Hint.FAULTS_RARER),
            *((between / unit, Lab13Hint.NOT_IN_SECONDS) for unit in (DAY, 3600, 60)),
        ],
        "interval": [
            (interval / math.sqrt(2), Lab13Hint.TWO_FORGOTTEN),
            (interval**2, Lab13Hint.NO_ROOT),
            (interval * math.sqrt(2), Lab13Hint.TWO_OUTSIDE),
            (young_interval(job.save, of_one), Lab13Hint.INTERVAL_OF_ONE),
            *((interval / unit, Lab13Hint.NOT_IN_SECONDS) for unit in (3600, 60)),
        ],
        "steps": [
            (interval / job.step, Lab13Hint.PARTS_OF_STEPS),
            (float(math.floor(interval / job.step)), Lab13Hint.ROUNDED_DOWN),
            (float(math.ceil(interval / job.step)), Lab13Hint.ROUNDED_UP),
        ],
        "lost": [
            (job.save / interval, Lab13Hint.HALF_OF_LOSS),  # and so much by faults: this is what makes it the best
            (job.save / interval + interval / between, Lab13Hint.WHOLE_INTERVAL),
            (job.save / between + interval / (2 * between), Lab13Hint.SAVED_PER_FAULT),
            (job.save / (interval + job.save) + interval / (2 * between), Lab13Hint.SAVE_IN_INTERVAL),
            (100 * lost, Lab13Hint.NOT_A_SHARE),
            (job.save / rounded + rounded / (2 * between), Lab13Hint.LOST_WHEN_ROUNDED),
        ],
    }
