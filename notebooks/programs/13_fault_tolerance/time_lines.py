"""What each worker of a job did when: starting, doing steps, waiting. The pictures of chapter 13 are made of it.

    time_lines.of_job(Path("folder of --steps-done"), attempts=[(begin, end), ...], workers=2, killed=1)
    time_lines.of_elastic(result, begin)

No program of its own, so there is nothing to launch on a laptop or under Slurm. All times are seconds of one clock.
"""

import itertools
import math
from pathlib import Path
from typing import Any, NamedTuple

from distlab.draw import Interval


class Life(NamedTuple):
    """A worker from its start, or from when it went on, until it ends or waits no longer.

    done: the second in which each step ended.  again: the first step that was done once more later.
    """

    begin: float
    done: dict[int, float]
    end: float
    again: float = math.inf

    def intervals(self) -> list[Interval]:
        """Steps that count and steps that are lost, the start before and the waiting after them."""
        first, last = min(self.done.values()), max(self.done.values())
        kept = max([first, *(second for step, second in self.done.items() if step < self.again)])
        named = (kept, last, "steps that are lost"), (self.begin, first, "starting"), (last, self.end, "waiting")
        return [Interval(first, kept, "steps"), *(Interval(*each) for each in named if each[1] > each[0])]


def of_job(folder: Path, attempts: list[tuple[float, float]], workers: int, killed: int) -> list[list[Interval]]:
    """Of a job that is started again: a row for each worker; all but the killed one wait for it."""
    rows = []
    for worker in range(workers):
        files = (folder / f"worker-{worker}{content}.txt" for content in ("", "-seconds"))
        steps, seconds = ([float(line) for line in file.read_text().split()] for file in files)
        done = [(int(step), second) for step, second in zip(steps, seconds, strict=True)]
        lives = [{step: second for step, second in done if begin < second < end} for begin, end in attempts]
        again = [*(min(life) for life in lives[1:]), math.inf]
        ends = [0 if worker == killed else end for _, end in attempts[:-1]] + [0]
        begins = (begin for begin, _ in attempts)
        rows.append([each for life in map(Life, begins, lives, ends, again) for each in life.intervals()])
    return rows


def of_elastic(result: dict[str, Any], begin: float) -> list[list[Interval]]:
    """Of an elastic job with two ranks, then one, then two, as rank 0 saw it."""
    groups = itertools.groupby(result["executed"], key=lambda entry: entry[1])
    both, alone, again = ({step: second for step, _, second in group} for _, group in groups)
    alone_from, again_from = min(alone.values()), min(again.values())
    rank_0 = [
        Life(begin, both, alone_from, min(alone)),
        Life(alone_from, alone, again_from),
        Life(again_from, again, 0),
    ]
    rank_1 = [Life(begin, both, 0, min(alone)), Life(max(alone.values()), again, 0)]
    return [[interval for life in lives for interval in life.intervals()] for lives in (rank_0, rank_1)]
