"""A run of a program with arrays that remember what was added: its steps and their pictures, even if it is wrong."""

from typing import cast

from distlab.draw.collective_tasks import task
from distlab.draw.steps.history import History
from distlab.draw.steps.strip import describe, draw_strip
from distlab.simulate import Events, Network, SimulationError, World
from distlab.simulate.world import Program

MOST_RANKS = 16
"""In a drawing: with more, a chunk's segments are thinner than a line."""


class Trace(History):
    """What a program did on the virtual cluster, and the pictures of it."""

    strip = draw_strip
    describe = describe


def trace(program: Program, size: int, length: int | None = None, collective: str = "all_reduce") -> Trace:
    """Run `program(rank, array)` on `size` ranks so that it can be drawn, also if the run ends in an error.

    Each rank's array has `length` elements (default: `size`, one for each chunk), which remember whose they are and
    what was added to them. A message takes one virtual second, however long it is, and adding takes none, so that the
    steps of a collective are seconds.

    collective: what the program has to do: "all_reduce", "reduce", "reduce_scatter", "broadcast", "scatter", "gather",
        "all_gather" or "all_to_all". It decides what a rank begins with and what is marked as wrong or missing. In a
        broadcast and a scatter only the root, rank 0, has an array, and the other ranks get None; in a gather and an
        all-gather each rank has its chunk of the array.

    Raises ValueError for more than MOST_RANKS ranks.
    """
    if size > MOST_RANKS:
        raise ValueError(f"{size} ranks are too many to draw, at most {MOST_RANKS}; simulate.World runs thousands")
    to_do = task(collective, size, size if length is None else length)
    try:
        run = World(size, Network(latency=1.0, seconds_per_byte=0.0)).run(program, to_do.inputs(), keep_contents=True)
    except SimulationError as error:
        return Trace(to_do, cast(Events, error.events), error=error)
    return Trace(to_do, run.events, run.results)
