"""What each worker of a job did when, for the pictures of chapter 13.

    time_lines.of_job(folder_of_steps_done, attempts=[(begin, end), ...], workers=2, killed=1)
    time_lines.of_elastic(result, begin)

All times are seconds of one clock. A worker that is killed waits for a second before it dies.
"""

import itertools
import math
from pathlib import Path
from typing import Any, NamedTuple

from distlab.draw import Interval

PAUSE = 1  # seconds between a worker's last step and its death


class Life(NamedTuple):
    """A worker from its start, or from when it went on, until it ends or waits no longer.

    done: the second in which each step ended.  again: the first step that is repeated later.
    """

    begin: float
    done: dict[int, float]
    end: float
    again: float = math.inf

    def intervals(self) -> list[Interval]:
        """Steps that count and steps that are lost; the start before, the waiting after."""
        first, last = min(self.done.values()), max(self.done.values())
        counting = [second for step, second in self.done.items() if step < self.again]
        kept = max([first, *counting])
        named = (
            (kept, last, "steps that are lost"),
            (self.begin, first, "starting"),
            (last, self.end, "waiting"),
        )
        others = [Interval(*each) for each in named if each[1] > each[0]]
        return [Interval(first, kept, "steps"), *others]


def row(*lives: Life) -> list[Interval]:
    """One worker's."""
    return [interval for life in lives for interval in life.intervals()]


def of_job(
    folder: Path, attempts: list[tuple[float, float]], workers: int, killed: int
) -> list[list[Interval]]:
    """Of a job that is started again: a row for each worker; all wait for the killed one."""
    rows = []
    for worker in range(workers):
        files = (folder / f"worker-{worker}{content}.txt" for content in ("", "-seconds"))
        steps, seconds = ([float(line) for line in file.read_text().split()] for file in files)
        done = [(int(step), second) for step, second in zip(steps, seconds, strict=True)]
        lives = [{s: t for s, t in done if begin < t < end} for begin, end in attempts]
        again = [*(min(life) for life in lives[1:]), math.inf]
        ends = [*(end for _, end in attempts[:-1]), 0]
        if worker == killed:
            ends[0] = max(lives[0].values()) + PAUSE
        begins = [begin for begin, _ in attempts]
        rows.append(row(*map(Life, begins, lives, ends, again)))
    return rows


def of_elastic(result: dict[str, Any], begin: float) -> list[list[Interval]]:
    """Of an elastic job with two ranks, then one, then two, as rank 0 saw it."""
    groups = itertools.groupby(result["executed"], key=lambda entry: entry[1])
    both, alone, again = ({step: second for step, _, second in group} for _, group in groups)
    alone_from, again_from = min(alone.values()), min(again.values())
    first = Life(begin, both, alone_from, min(alone))
    rank_0 = row(first, Life(alone_from, alone, again_from), Life(again_from, again, 0))
    killed = Life(begin, both, max(both.values()) + PAUSE, min(alone))
    return [rank_0, row(killed, Life(max(alone.values()), again, 0))]
