"""How long a disturbed job takes: an exercise of lab 13 and its judge."""

import math
from typing import NamedTuple

import numpy as np
from lab_13 import observe
from lab_13.disturbed_runs import Rules, elapsed
from lab_13.hints import Lab13Hint

from distlab.labs.answer import Answer
from distlab.labs.number_judge import Expected, Mistakes, NumberHint, described, is_near, number
from distlab.labs.part_cases import PartCase, judge_cases
from distlab.labs.verdict import AnyHint, Verdict, right, wrong

NEAR = 0.003
"""The relative error up to which seconds may come from small steps of time."""
QUIET, COMPUTING, SAVING, STARTING = (
    "no fault before the end",
    "while it computes",
    "while it saves",
    "while it starts again",
)


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


class _Case(NamedTuple):
    """A run, the part that it belongs to, and the hint for an answer that no usual mistake gives."""

    part: str
    run: DisturbedRun
    otherwise: AnyHint | None = None


def _drawn_cases(generator: np.random.Generator) -> list[_Case]:
    """Drawn until saves that are counted in the interval show in every part, and as no other mistake."""
    while True:
        cases = _cases(generator)
        first_of_parts = {case.part: case.run for case in reversed(cases)}.values()
        if all(map(_shows_saves_in_intervals, first_of_parts)):
            return cases


def _cases(generator: np.random.Generator) -> list[_Case]:
    """What is new in a case comes after simpler ones of its part; the work is a whole number of intervals in two."""
    # With so many intervals, and saves so long, every usual mistake gives another number.
    save, restart = float(generator.integers(6, 10)), float(generator.integers(12, 16))
    # Of an even interval half is a whole number, and no fault that comes at half a second loses as much.
    interval, half = 2.0 * float(generator.integers(10, 15)), 0.5
    quiet = DisturbedRun(9 * interval, interval, save, restart, [])
    job = quiet._replace(work=9 * interval + float(generator.integers(3, 15)))
    cycle = interval + save
    # After two saves, so that to lose all work costs more than one interval; and in the first half of an interval.
    computing = 2 * cycle + float(generator.integers(5, int(interval) // 2 - 2)) + half
    saving = 2 * cycle + interval + float(generator.integers(0, int(save))) + half
    twice = computing + restart + cycle + interval / 2 + half
    # A start that takes longer than a piece of work: whoever counts it wrongly does work in the time that it takes.
    short = job._replace(interval=restart // 3, work=4 * (restart // 3))
    # So late after a save that a start before all others would lose no save.
    later = 2 * cycle + restart + float(generator.integers(1, 4)) + half
    starting = [later, later + float(generator.integers(2, int(restart) - 2)), later + 2 * restart - half]
    again = [later + starts * (restart - 2) for starts in range(4)]
    return [
        _Case(QUIET, quiet),
        _Case(QUIET, job),
        _with_faults_after_the_end(QUIET, job),
        *(_Case(QUIET, job._replace(work=work), Lab13Hint.SAVED_FIRST) for work in (interval, interval - 7)),
        _Case(COMPUTING, job._replace(faults=[computing])),
        _Case(COMPUTING, job._replace(faults=[computing, twice])),
        _with_faults_after_the_end(COMPUTING, job._replace(faults=[computing])),
        _Case(SAVING, job._replace(faults=[saving])),
        _Case(SAVING, EXAMPLE),
        _Case(STARTING, job._replace(faults=starting[:2])),
        _Case(STARTING, job._replace(faults=starting)),
        _Case(STARTING, short._replace(faults=[half, restart])),
        _Case(STARTING, job._replace(faults=again[:3]), Lab13Hint.START_AGAIN_DISTURBED),
        _Case(STARTING, job._replace(faults=again), Lab13Hint.START_AGAIN_DISTURBED),
    ]


def _shows_saves_in_intervals(run: DisturbedRun) -> bool:
    """Whether saves that count as a part of the interval change the seconds, and not as other mistakes do."""
    changes = (Rules(), Rules(saves_at_end=True), Rules(start_can_fail=False), Rules(first_start_counts=True))
    others = [*(elapsed(*run, rules=rules) for rules in changes), elapsed(*run._replace(faults=run.faults[:1]))]
    shorter = run._replace(interval=run.interval - run.save)
    return elapsed(*run, rules=Rules(interval_has_save=True)) not in others and elapsed(*shorter) not in others


def _with_faults_after_the_end(part: str, run: DisturbedRun) -> _Case:
    end = elapsed(*run)
    late = run._replace(faults=[*run.faults, end + 7.5, end + 71.5])
    return _Case(part, late, Lab13Hint.AFTER_END.says(seconds=end))


def judge_elapsed(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A quarter of the points each for no fault, and faults while the job computes, saves and starts again."""

    def part_case(case: _Case) -> PartCase:
        return PartCase(case.part, lambda: _verdict_on_run(case, answer), f"{case.run}: ")

    return judge_cases(map(part_case, _drawn_cases(generator)))


def _verdict_on_run(case: _Case, answer: Answer) -> Verdict:
    run = case.run
    said = answer.call("elapsed", *run)
    value = number(said)
    if value is None:
        return wrong(Lab13Hint.NO_SECONDS.says(got=described(said)))
    true = elapsed(*run)
    mistakes, otherwise = _mistakes_and_otherwise(case, true)
    if is_near(value, true, NEAR):
        otherwise = Lab13Hint.SMALL_STEPS.says(seconds=true)
    expected = Expected(true, mistakes, otherwise)
    if hint := expected.hint_for(value):
        return wrong(hint, context=f"{run}; not {value:.10g} s: ")
    left = answer.inside(observe.faults_left, *run)
    if left == run.faults:
        return right()
    count = len(left) if isinstance(left, list) else 0
    return wrong(Lab13Hint.FAULTS_CHANGED.says(left=count, count=len(run.faults)), context=f"{run}: ")


def _mistakes_and_otherwise(case: _Case, true: float) -> tuple[Mistakes, AnyHint]:
    """A case with a hint of its own shows one mistake only; the others show in earlier cases."""
    if case.otherwise is not None:
        return [], case.otherwise
    return _mistakes(case.run, true), Lab13Hint.LATER_THAN_THAT.says(seconds=true)


def _mistakes(run: DisturbedRun, true: float) -> Mistakes:
    rules: list[tuple[Rules, AnyHint]] = [
        (Rules(first_start_counts=True), Lab13Hint.FIRST_START),
        (Rules(saves_at_end=True), Lab13Hint.SAVED_AT_END),
        (Rules(broken_saves_count=True), Lab13Hint.SAVE_SURVIVES),
        (Rules(loses_work=False), Lab13Hint.NOTHING_LOST),
        (Rules(loses_saved_work=True), Lab13Hint.ALL_LOST),
        (Rules(start_can_fail=False), Lab13Hint.RESTART_UNDISTURBED),
    ]
    if run.interval > run.save:  # else no work is ever done
        rules.insert(0, (Rules(interval_has_save=True), Lab13Hint.INTERVAL_WITH_SAVE))
        shorter = elapsed(*run._replace(interval=run.interval - run.save))
    else:
        shorter = None
    _, interval, _, restart, faults = run
    undisturbed = elapsed(*run._replace(faults=[]))
    return [
        (undisturbed, Lab13Hint.NO_FAULTS),
        (true + restart, Lab13Hint.FIRST_START),
        *((elapsed(*run, rules=changed), hint) for changed, hint in rules),
        (_by_remainders(run, undisturbed), Lab13Hint.START_LOSES_WORK),
        (shorter, Lab13Hint.INTERVAL_WITH_SAVE),
        (elapsed(*run._replace(save=0.0)), Lab13Hint.NO_SAVES),
        (elapsed(*run._replace(restart=0.0)), Lab13Hint.NO_RESTART),
        (elapsed(*run._replace(faults=run.faults[:1])), Lab13Hint.ONE_FAULT),
        (elapsed(*run._replace(faults=np.cumsum(run.faults).tolist())), Lab13Hint.FAULTS_ADDED),
        (undisturbed + len(faults) * (restart + interval / 2), Lab13Hint.HALF_INTERVALS),
        (float(math.floor(true)), NumberHint.ROUNDED),
        (float(math.ceil(true)), NumberHint.ROUNDED),
    ]


def _by_remainders(run: DisturbedRun, undisturbed: float) -> float:
    """What it takes if every fault loses the seconds since the last save, also those of a start."""
    extra = 0.0
    for fault in run.faults:
        if fault <= undisturbed + extra:
            extra += run.restart + (fault - extra) % (run.interval + run.save)
    return undisturbed + extra
