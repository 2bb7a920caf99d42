"""How long a job takes that saves and is disturbed by faults: simulated, expected by a formula, and the drawn runs."""

import math
from collections.abc import Sequence

import numpy as np

from distlab.labs.by_programs import OfPart, changed

QUIET, COMPUTING, SAVING, STARTING = RUN_PARTS = (
    "no fault before the end",
    "while it computes",
    "while it saves",
    "while it starts again",
)
RUN = OfPart(SAVING, 40.0, 10.0, 2.0, 5.0, [11.0, 30.0])

ELAPSED_TEXT = """\
def elapsed(work, interval, save, restart, faults):
    second, saved, coming = 0.0, 0.0, [*faults, math.inf]
    while True:
        is_last = work - saved <= interval
        piece = work - saved if is_last else interval
        computed = second + piece
        end = computed if is_last else computed + save
        if coming[0] >= end:
            second, saved = end, saved + piece
            if is_last:
                return end
            continue
        fault = coming.pop(0)
        second = fault + restart
        while coming[0] < second:
            second = coming.pop(0) + restart
"""
"""The seconds from the start of a job until its work is done.

After every `interval` seconds of work the job saves, except at the end of the work. A fault loses what was done
since the last complete save; the job then starts again, `restart` seconds, and a fault in these makes the start
begin again. `faults` are seconds since the start, increasing.
"""
elapsed = changed(ELAPSED_TEXT)
FIRST_START = "the first start costs nothing: the job works from second 0 on. After what does it start again?"
AT_END = "this saves once more when the work is done."
LEFT_OUT = "a fault while the job starts again is left out here. It makes the start begin again."
HAS_SAVE = "the interval is work only. When does the next save begin, if the last one takes time as well?"
BEGIN, FAULT = "    while True:\n", "        fault = coming.pop(0)\n"
START = "        while coming[0] < second:\n            second = coming.pop(0) + restart\n"
OTHER_RULES = {
    hint: changed(ELAPSED_TEXT, change)
    for hint, change in {
        FIRST_START: (BEGIN, f"    if True:\n        second = restart\n{START}{BEGIN}"),
        AT_END: ("computed if is_last else computed + save", "computed + save"),
        "a save that a fault interrupts counts as complete here.": (
            (FAULT, f"{FAULT}        saved += piece * (fault >= computed)\n")
        ),
        "a fault loses no work here. What was done since the last complete save?": (
            (FAULT, f"{FAULT}        saved += min(fault - second, piece)\n")
        ),
        "a fault loses all work here, also what was saved.": (FAULT, f"{FAULT}        saved = 0.0\n"),
        LEFT_OUT: (START, START.replace("second = coming.pop(0) + restart", "coming.pop(0)")),
        HAS_SAVE: ("else interval\n", "else interval - (save if interval > save else 0.0)\n"),
        "each fault but the first comes during a start, also during one that has begun again.": (
            (START, START.replace("while", "if") + START.replace("second = coming.pop(0) + restart", "coming.pop(0)"))
        ),
    }.items()
}
"""Programs by other rules, by what is said of them."""


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
    with_saves = {OTHER_RULES[HAS_SAVE](*case), elapsed(work, interval - save, save, restart, faults)}
    others = {program(*case) for program in (elapsed, *(OTHER_RULES[hint] for hint in (AT_END, LEFT_OUT, FIRST_START)))}
    return not with_saves & {*others, elapsed(work, interval, save, restart, faults[:1])}


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
