"""What each worker of a job did when, for the pictures of chapter 13.

    time_lines.of_job(folder_of_steps_done, attempts=[(begin, end), ...], workers=2, killed=1)
    time_lines.of_elastic(result, begin)

All times are seconds of one clock. A worker that is killed waits for a second before it dies.
"""

import itertools
import math
from pathlib import Path
from typing import Any

from distlab.draw import Interval

Done = dict[int, float]  # the second in which each step ended
PAUSE = 1  # seconds that a worker of faults.py waits after its last step, before it dies


def life(begin: float, done: Done, end: float = 0, again: float = math.inf) -> list[Interval]:
    """A worker from its start, or from when it went on, until it ends or waits no longer.

    again: the first step that is repeated later. Those from there on are lost.
    """
    first, last = min(done.values()), max(done.values())
    kept = max([first, *(second for step, second in done.items() if step < again)])
    parts = [(first, kept, "steps"), (kept, last, "steps that are lost")]
    parts += [(begin, first, "starting"), (last, end, "waiting")]
    return [Interval(*part) for part in parts if part[1] > part[0]]


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
        again = [*map(min, lives[1:]), math.inf]
        ends = [*(end for _, end in attempts[:-1]), 0]
        if worker == killed:
            ends[0] = max(lives[0].values()) + PAUSE
        begins = [begin for begin, _ in attempts]
        rows.append([*itertools.chain(*map(life, begins, lives, ends, again))])
    return rows


def of_elastic(result: dict[str, Any], begin: float) -> list[list[Interval]]:
    """Of an elastic job with two ranks, then one, then two, as rank 0 saw it."""
    groups = itertools.groupby(result["executed"], key=lambda entry: entry[1])
    both, alone, again = ({step: second for step, _, second in group} for _, group in groups)
    alone_from, again_from = min(alone.values()), min(again.values())
    rank_0 = life(begin, both, alone_from, min(alone))
    rank_0 += life(alone_from, alone, again_from) + life(again_from, again)
    killed = life(begin, both, max(both.values()) + PAUSE, min(alone))
    return [rank_0, killed + life(max(alone.values()), again)]
