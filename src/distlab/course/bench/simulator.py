"""The virtual cluster's speed."""

import statistics
import time
from collections.abc import Callable

import numpy as np

from distlab.collectives import ring_all_reduce
from distlab.simulate import World

REPEATS = {64: 20, 1024: 1}


def measure(say: Callable[[str], None] = print) -> list[dict[str, float]]:
    """The virtual cluster's ring all-reduce, events kept: messages per second of elapsed time, by number of ranks."""
    rows = []
    for size, repeats in REPEATS.items():
        inputs = [np.full(size, rank, np.float64) for rank in range(size)]
        if repeats > 1:
            World(size).run(ring_all_reduce, inputs)  # a warm-up
        seconds = []
        for _ in range(repeats):
            start = time.perf_counter()
            run = World(size).run(ring_all_reduce, inputs)
            seconds.append(time.perf_counter() - start)
        median = statistics.median(seconds)
        rows.append(
            {
                "ranks": size,
                "messages": run.messages,
                "repeats": repeats,
                "seconds": median,
                "messages_per_second": run.messages / median,
            }
        )
        say(f"simulator, {size} ranks: {median:.3f} s, {run.messages / median:,.0f} messages/s")
    return rows
