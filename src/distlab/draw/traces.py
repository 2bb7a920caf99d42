"""A program run with arrays that remember what was added, kept so that it can be drawn even if the program is wrong."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass

import numpy as np

from distlab.draw.collective_tasks import Task, task
from distlab.simulate import Contributions, Events, Network, Run, SimulationError, World

Program = Callable[..., Coroutine]


@dataclass(frozen=True)
class Trace:
    """What a program did on the virtual cluster, as the step strip draws it.

    task: what each rank began with and has to hold in the end.
    events: everything that happened, with contents.
    results: what the program returned, by rank; None if the run ended in an error.
    error: the error that ended the run, or None.
    """

    task: Task
    events: Events
    results: list | None = None
    error: SimulationError | None = None

    @property
    def size(self) -> int:
        """The number of ranks."""
        return self.task.size


# What can be drawn: a trace, or what a run gave.
Source = Trace | Run | SimulationError | Events


def trace(
    program: Program, size: int, length: int | None = None, collective: str | None = "all_reduce", root: int = 0
) -> Trace:
    """Run `program(rank, array)` on `size` ranks so that it can be drawn, also if the run ends in an error.

    Each rank's array has `length` elements (default: `size`, one for each chunk), which remember whose they are and
    what was added to them. A message takes one virtual second, however long it is, and adding takes none, so that the
    steps of a collective are seconds.

    collective: what the program has to do: "all_reduce", "reduce", "reduce_scatter", "broadcast", "scatter", "gather",
        "all_gather" or "all_to_all". It decides what a rank is given and what is marked as wrong or missing. In a
        broadcast and a scatter the root alone has an array, and the others get None; in a gather and an all-gather each
        rank has its chunk of the array. None: whole arrays, and nothing is known about the end.
    """
    given = task(collective, size, size if length is None else length, root)
    world = World(size, Network(latency=1.0, seconds_per_byte=0.0))
    try:
        run = world.run(program, given.inputs(), keep_contents=True)
    except SimulationError as error:
        return Trace(given, error.events, error=error)
    return Trace(given, run.events, run.results)


def trace_of(
    source: Source,
    size: int | None = None,
    collective: str | None = "all_reduce",
    root: int = 0,
) -> Trace:
    """`source` as a trace; what is not a trace must come from a run with `contributions` and `keep_contents=True`.

    size: the number of ranks; needed only if some rank neither sent nor received.

    Raises ValueError for events without contents, or from other inputs than `contributions`.
    """
    if isinstance(source, Trace):
        return source
    events = events_of(source)
    results = source.results if isinstance(source, Run) else None
    ranks = len(results) if results is not None else size or ranks_in(events)
    return Trace(
        task(collective, ranks, _length_of(events), root),
        events,
        results,
        source if isinstance(source, SimulationError) else None,
    )


def events_of(source: Source) -> Events:
    """The events of what can be drawn.

    Raises ValueError for an error that has none, since it is not from a run.
    """
    events = source if isinstance(source, Events) else source.events
    if events is None:
        raise ValueError(f"nothing ran before this error, so that there is nothing to draw: {source}")
    return events


def ranks_in(events: Events) -> int:
    """The number of ranks that did anything: one more than the highest number that occurs."""
    columns = events.columns
    return 1 + int(max(columns["rank"].max(initial=0), columns["partner"].max(initial=0)))


def _length_of(events: Events) -> int:
    """The length of the inputs: one more than the highest position that is in anything sent or added."""
    highest = -1
    for event in events:
        if event.kind in ("send", "reduce"):
            if event.buffer is None:
                raise ValueError("these events hold no contents: run the program with keep_contents=True")
            for element in np.ravel(event.buffer):
                if isinstance(element, Contributions):
                    highest = max(highest, *element.positions)
    if highest < 0:
        raise ValueError("nothing here says what was added: give the program distlab.simulate.contributions as inputs")
    return highest + 1
