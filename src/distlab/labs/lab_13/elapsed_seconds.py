"""How long a disturbed job takes: an exercise of lab 13 and its judge."""

from typing import NamedTuple

import numpy as np

from distlab.labs.answer import Answer
from distlab.labs.lab_13.disturbed_runs import Rules, elapsed
from distlab.labs.lab_13.hints import Lab13Hint
from distlab.labs.number_judge import Expected, Mistakes, number
from distlab.labs.part_cases import PartCase, judge_cases
from distlab.labs.plain_data import Plain
from distlab.labs.verdict import AnyHint, Verdict, right, wrong

QUIET, COMPUTING, SAVING, STARTING = "no fault", "while it computes", "while it saves", "while it starts again"


class DisturbedRun(NamedTuple):
    """Seconds of work, between two saves, of a save, of a start, and when the faults come."""

    work: float
    interval: float
    save: float
    restart: float
    faults: list[float]

    def __str__(self) -> str:
        faults = f"faults at {', '.join(f'{fault:g}' for fault in self.faults)} s" if self.faults else "no fault"
        times = f"{self.work:g} s of work, saves every {self.interval:g} s that take {self.save:g} s"
        return f"{times}, a start of {self.restart:g} s, {faults}"


EXAMPLE = DisturbedRun(40.0, 10.0, 2.0, 5.0, [11.0, 30.0])


def _drawn_runs(generator: np.random.Generator) -> list[tuple[str, DisturbedRun]]:
    """By the part that they belong to; the work is a whole number of intervals only in the first."""
    save, restart = (float(generator.integers(low, low + 4)) for low in (3, 12))
    interval = float(generator.integers(20, 40))
    quiet = DisturbedRun(4 * interval, interval, save, restart, [])
    job = quiet._replace(work=4 * interval + float(generator.integers(3, 15)))
    cycle, half = interval + save, 0.5
    computing = cycle + float(generator.integers(5, int(interval) - 4)) + half
    saving = 2 * cycle + interval + float(generator.integers(0, int(save))) + half
    twice = computing + restart + cycle + interval / 2 + half
    # A start that takes longer than a piece of work: whoever counts it wrongly does work in the time that it takes.
    short = job._replace(interval=restart // 3, work=4 * (restart // 3))
    starting = [computing, computing + float(generator.integers(2, int(restart) - 2)), computing + 2 * restart - half]
    return [
        (QUIET, quiet),
        (QUIET, job),
        (COMPUTING, job._replace(faults=[computing])),
        (COMPUTING, job._replace(faults=[computing, twice])),
        (SAVING, job._replace(faults=[saving])),
        (STARTING, job._replace(faults=starting[:2])),
        (STARTING, job._replace(faults=starting)),
        (STARTING, short._replace(faults=[half, restart])),
    ]


def judge_elapsed(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A quarter of the points each for no fault, and faults while the job computes, saves and starts again."""

    def part_case(part: str, run: DisturbedRun) -> PartCase:
        return PartCase(part, lambda: _verdict_on_seconds(run, answer.call("elapsed", *run)), f"{run}: ")

    return judge_cases(part_case(*run) for run in [*_drawn_runs(generator), (SAVING, EXAMPLE)])


def _verdict_on_seconds(run: DisturbedRun, seconds: Plain) -> Verdict:
    value = number(seconds)
    if value is None:
        return wrong(Lab13Hint.NO_SECONDS)
    true = elapsed(*run)
    expected = Expected(true, _mistakes(run), Lab13Hint.LATER_THAN_THAT.says(seconds=true), 1e-9)
    hint = expected.hint_for(value)
    return wrong(hint, context=f"{run}; not {value:g} s: ") if hint else right()


def _mistakes(run: DisturbedRun) -> Mistakes:
    rules: list[tuple[Rules, AnyHint]] = [
        (Rules(saves_at_end=True), Lab13Hint.SAVED_AT_END),
        (Rules(broken_saves_count=True), Lab13Hint.SAVE_SURVIVES),
        (Rules(loses_work=False), Lab13Hint.NOTHING_LOST),
        (Rules(loses_saved_work=True), Lab13Hint.ALL_LOST),
        (Rules(start_can_fail=False), Lab13Hint.RESTART_UNDISTURBED),
    ]
    return [
        *((elapsed(*run, rules=changed), hint) for changed, hint in rules),
        (elapsed(*run._replace(save=0.0)), Lab13Hint.NO_SAVES),
        (elapsed(*run._replace(restart=0.0)), Lab13Hint.NO_RESTART),
        (elapsed(*run._replace(faults=run.faults[:1])), Lab13Hint.ONE_FAULT),
    ]
