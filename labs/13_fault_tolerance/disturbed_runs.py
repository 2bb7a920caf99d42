"""How long a job takes that saves and is disturbed by faults: simulated, expected by a formula, and the drawn runs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from distlab.labs.by_programs import OfPart

QUIET, COMPUTING, SAVING, STARTING = RUN_PARTS = (
    "no fault before the end",
    "while it computes",
    "while it saves",
    "while it starts again",
)
RUN = OfPart(SAVING, 40.0, 10.0, 2.0, 5.0, [11.0, 30.0])


@dataclass(frozen=True)
class Rules:
    """The rules of a simulated run; the usual mistakes change one of them."""

    saves_at_end: bool = False
    loses_work: bool = True
    loses_saved_work: bool = False
    broken_saves_count: bool = False
    start_can_fail: bool = True
    second_start_can_fail: bool = True
    interval_has_save: bool = False
    first_start_counts: bool = False


def simulated(
    rules: Rules, work: float, interval: float, save: float, restart: float, faults: Sequence[float]
) -> float:
    """The seconds from the start of a job until its work is done, under some rules."""
    second, saved, coming = 0.0, 0.0, list(reversed(faults))
    if rules.first_start_counts:
        second = restart
        while coming and coming[-1] < second:
            second = coming.pop() + restart
    while True:
        is_last = work - saved <= interval
        piece = work - saved if is_last else interval - (save if rules.interval_has_save and interval > save else 0.0)
        computed = second + piece
        end = computed + (save if not is_last or rules.saves_at_end else 0.0)
        while coming and coming[-1] < second:
            coming.pop()
        if not coming or coming[-1] >= end:
            second, saved = end, saved + piece
            if is_last:
                return end
            continue
        fault = coming.pop()
        if fault >= computed and rules.broken_saves_count:
            saved += piece
        elif not rules.loses_work:
            saved += min(fault - second, piece)
        elif rules.loses_saved_work:
            saved = 0.0
        second = fault + restart
        while rules.start_can_fail and coming and coming[-1] < second:
            second = coming.pop() + restart
            if not rules.second_start_can_fail:
                break


def elapsed(work: float, interval: float, save: float, restart: float, faults: Sequence[float]) -> float:
    """The seconds from the start of a job until its work is done.

    After every `interval` seconds of work the job saves, except at the end of the work. A fault loses what was done
    since the last complete save; the job then starts again, `restart` seconds, and a fault in these makes the start
    begin again. `faults` are seconds since the start, increasing.
    """
    return simulated(Rules(), work, interval, save, restart, faults)


def runs(generator: np.random.Generator) -> list[OfPart]:
    """Drawn until saves that are counted in the interval show in every part, and as no other mistake."""
    while True:
        drawn = drawn_runs(generator)
        if all(map(shows_saves_in_intervals, {case.part: case for case in reversed(drawn)}.values())):
            return drawn


def drawn_runs(generator: np.random.Generator) -> list[OfPart]:
    """What is new in a case comes after simpler ones of its part; the work is a whole number of intervals in two."""
    # With so many intervals, and saves so long, every usual mistake gives another number.
    save, restart = float(generator.integers(6, 10)), float(generator.integers(12, 16))
    # Of an even interval half is a whole number, and no fault that comes at half a second loses as much.
    interval, half = 2.0 * float(generator.integers(10, 15)), 0.5
    work, cycle = 9 * interval + float(generator.integers(3, 15)), interval + save
    # After two saves, so that to lose all work costs more than one interval; and in the first half of an interval.
    fault = 2 * cycle + float(generator.integers(5, int(interval) // 2 - 2)) + half
    saving = 2 * cycle + interval + float(generator.integers(0, int(save))) + half
    twice = fault + restart + cycle + interval / 2 + half
    # So late after a save that a start before all others would lose no save.
    later = 2 * cycle + restart + float(generator.integers(1, 4)) + half
    starting = [later, later + float(generator.integers(2, int(restart) - 2)), later + 2 * restart - half]
    again = [later + starts * (restart - 2) for starts in range(4)]

    def job(part: str, faults: list[float], work: float = work, interval: float = interval) -> OfPart:
        return OfPart(part, work, interval, save, restart, faults)

    def and_after_the_end(part: str, faults: list[float]) -> OfPart:
        end = elapsed(work, interval, save, restart, faults)
        return job(part, [*faults, end + 7.5, end + 71.5])

    return [
        job(QUIET, [], 9 * interval),
        job(QUIET, []),
        and_after_the_end(QUIET, []),
        *(job(QUIET, [], shorter) for shorter in (interval, interval - 7)),
        job(COMPUTING, [fault]),
        job(COMPUTING, [fault, twice]),
        and_after_the_end(COMPUTING, [fault]),
        job(SAVING, [saving]),
        RUN,
        *(job(STARTING, faults) for faults in (starting[:2], starting)),
        # A start that takes longer than a piece of work: whoever counts it wrongly does work in the time it takes.
        job(STARTING, [half, restart], 4 * (restart // 3), restart // 3),
        *(job(STARTING, faults) for faults in (again[:3], again)),
    ]


def shows_saves_in_intervals(case: OfPart) -> bool:
    """Whether saves that count as a part of the interval change the seconds, and not as other mistakes do."""
    work, interval, save, restart, faults = case
    changes = (Rules(), Rules(saves_at_end=True), Rules(start_can_fail=False), Rules(first_start_counts=True))
    others = [*(simulated(rules, *case) for rules in changes), elapsed(work, interval, save, restart, faults[:1])]
    shorter = elapsed(work, interval - save, save, restart, faults)
    return simulated(Rules(interval_has_save=True), *case) not in others and shorter not in others


def by_remainders(work: float, interval: float, save: float, restart: float, faults: Sequence[float]) -> float:
    """What it takes if every fault loses the seconds since the last save, also those of a start."""
    total = elapsed(work, interval, save, restart, [])
    for fault in faults:
        if fault <= total:
            lost_work = (fault - (total - elapsed(work, interval, save, restart, []))) % (interval + save)
            total += restart + lost_work
    return total


def young_interval(save: float, between_faults: float) -> float:
    """The seconds between two saves with which the least time is lost (Young 1974), for a save that is short."""
    return math.sqrt(2 * save * between_faults)


def expected_seconds(work: float, interval: float, save: float, restart: float, between_faults: float) -> float:
    """The mean of `elapsed` if the times between faults are exponential, for an integer number of intervals.

    The last interval has no save. Source: Daly, Future Generation Computer Systems 22 (2006), 303–312.
    """

    def until_done(seconds: float) -> float:
        return between_faults * math.exp(restart / between_faults) * math.expm1(seconds / between_faults)

    intervals = math.ceil(work / interval)
    last = work - (intervals - 1) * interval
    return (intervals - 1) * until_done(interval + save) + until_done(last)
