"""How long a job takes that saves and is disturbed by faults: simulated, and expected by a closed formula."""

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Rules:
    """The rules of a simulated run; the usual mistakes change one of them."""

    saves_at_end: bool = False
    loses_work: bool = True
    loses_saved_work: bool = False
    broken_saves_count: bool = False
    start_can_fail: bool = True
    interval_has_save: bool = False
    first_start_counts: bool = False


RIGHT_RULES = Rules()


def elapsed(
    work: float, interval: float, save: float, restart: float, faults: Sequence[float], rules: Rules = RIGHT_RULES
) -> float:
    """The seconds from the start of a job until its work is done.

    After every `interval` seconds of work the job saves, except at the end of the work. A fault loses what was done
    since the last complete save; the job then starts again, `restart` seconds, and a fault in these makes the start
    begin again. `faults` are seconds since the start, increasing.
    """
    second, saved, coming = 0.0, 0.0, list(reversed(faults))
    if rules.first_start_counts:
        second = restart
        while coming and coming[-1] < second:
            second = coming.pop() + restart
    while True:
        is_last = work - saved <= interval
        piece = work - saved if is_last else interval - (save if rules.interval_has_save else 0.0)
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


def expected_seconds(work: float, interval: float, save: float, restart: float, between_faults: float) -> float:
    """The mean of `elapsed` if the times between faults are exponential, for an integer number of intervals.

    The last interval has no save. Source: Daly, Future Generation Computer Systems 22 (2006), 303–312.
    """

    def until_done(seconds: float) -> float:
        return between_faults * math.exp(restart / between_faults) * math.expm1(seconds / between_faults)

    intervals = math.ceil(work / interval)
    last = work - (intervals - 1) * interval
    return (intervals - 1) * until_done(interval + save) + until_done(last)
