"""A run of a program with arrays that remember what was added: its steps and their pictures, even if it is wrong."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from distlab.draw.collective_tasks import Element, Holding, Task, task
from distlab.draw.steps import animation, strip
from distlab.draw.steps.history import StepMessage, Steps, content_of, elements, holdings, steps_of
from distlab.runtime.arguments import WrongArgument, require_kind, require_whole, wrong
from distlab.simulate import Contributions, DeadlockError, Events, Network, Run, SimulationError, World
from distlab.simulate.world import Program

MOST_RANKS = 16
# All steps of a ring of 10 ranks; a strip of them is a metre and a half high.
MOST_BOXES = 20_000
"""In a drawing: with more, a chunk's segments are thinner than a line, and a strip takes half a minute."""


@dataclass(frozen=True)
class Trace:
    """What a program did on the virtual cluster, and the pictures of it.

    task: what each rank began with and must hold at the end.
    events: everything that happened, with contents.
    results: what the program returned, by rank; None if the run ended in an error.
    error: the error that ended the run, or None.
    """

    task: Task
    events: Events
    results: Sequence[object] | None = None
    error: SimulationError | None = None

    # Pictures

    def strip(self, steps: Sequence[int] | None = None) -> Figure:
        """What each rank holds after each step, as the program really ran: a column per step, a row per rank.

        A rank's row has the chunks of its array. The coloured, numbered segments of a chunk are the ranks whose share
        has been added so far, each at its own place, so that an empty place is a share that has yet to come. A small
        triangle below a chunk says that it is sent in the next step, one above it that the step changed it; arrows lead
        from the sender to the receiver. A thick frame is a finished chunk. What is wrong (a share added twice, a share
        of another chunk, at the end a missing one) is black, or a dash, in a dashed frame with an exclamation mark, and
        a line below the picture says where it first went wrong. A run that ended in an error is drawn up to where it
        stopped.

        steps: the columns to draw; 0 is the start. Default: all of them, in as many lines as needed.

        Raises ValueError for steps that the run does not have, WrongArgument for what is no list of whole numbers, and
        for more steps of so many ranks than anybody can look at.
        """
        require_kind("steps", steps, (Iterable, type(None)), "a list, such as [0, 1]")
        columns = list(range(self.last + 1) if steps is None else steps)
        for step in columns:
            require_whole("a step", step)
        if not columns or not set(columns) <= set(range(self.last + 1)):
            raise ValueError(f"steps are {columns}, but the run has the start, 0, and the steps to {self.last}")
        if len(columns) * self.size**3 > MOST_BOXES:
            raise WrongArgument(
                f"{len(columns)} steps of {self.size} ranks would make a picture of many metres; choose steps, such as "
                f"strip([0, 1, {self.last}]), or take the animation."
            )
        return strip.draw_strip(self, columns)

    def describe(self) -> str:
        """The strip in words, for the picture's description: who sends to whom in each step, and how it ends."""
        return strip.describe(self)

    def animation(self, description: str, seconds_per_step: float = 2.0) -> str:
        """The steps as an animated SVG: the messages travel from rank to rank, and the chunks fill up.

        It moves by CSS alone, pauses while the pointer is on it, and stands still, at the end of the run, for readers
        who have asked their system for reduced motion. `description` becomes its title. Raises WrongArgument for more
        than `steps.animation.MOST_RANKS` ranks.
        """
        return animation.animated_svg(self, description, seconds_per_step)

    def show_animation(self, description: str, seconds_per_step: float = 2.0) -> None:
        """Display the animation in a notebook with a box to pause it and `description`; below it, the strip.

        Works in JupyterLab and in exported pages, without JavaScript. Where HTML is not displayed the description
        replaces it.
        """
        animation.show_animated(self, description, seconds_per_step)

    # Steps

    @property
    def size(self) -> int:
        """The number of ranks."""
        return self.task.size

    @property
    def last(self) -> int:
        """The number of the last step."""
        return self._steps.last

    @property
    def messages(self) -> list[StepMessage]:
        """All messages, in order of their steps."""
        return self._steps.messages

    @cached_property
    def holdings(self) -> list[list[Holding]]:
        """By step (0 is the start) and rank, what the rank holds."""
        return holdings(self.task, self._steps, self.results)

    @cached_property
    def boxes(self) -> list[int]:
        """The first position of each box; a box is a chunk, or a part of one if its elements differ somewhere."""
        rows = {row for by_rank in self.holdings for row in by_rank}
        chunk_of = self.task.chunk_of
        return [
            position
            for position in range(self.task.length)
            if position == 0
            or chunk_of(position) != chunk_of(position - 1)
            or not all(_continues(row, position) for row in rows)
        ]

    @cached_property
    def adds(self) -> bool:
        """Whether shares are added in this run, so that a box needs a place for each rank's."""
        every = (element for by_rank in self.holdings for row in by_rank for element in row if element is not None)
        return self.task.adds or any(element.counts.total() > 1 for element in every)

    @property
    def is_over(self) -> bool:
        """Whether every rank's program ended, so that nothing may be missing in the last step."""
        return self.error is None

    def arriving_in(self, step: int) -> list[StepMessage]:
        """The messages of that step."""
        return [message for message in self.messages if message.step == step]

    def boxes_sent(self, message: StepMessage) -> list[int]:
        """The boxes, by number, whose content the message carries."""
        return [number for number in range(len(self.boxes)) if self.sent_from(message, number) is not None]

    def sent_from(self, message: StepMessage, box: int) -> Element:
        """The first element that the message carries from that box of its sender; None if there is none."""
        sent = elements(message.content)
        if message.buffer_size == self.task.length:
            places = list(range(message.position, message.position + len(sent)))
        else:
            places = [min(element.positions) if element is not None else -1 for element in sent]
        inside = self._positions(box)
        return next((element for place, element in zip(places, sent, strict=True) if place in inside), None)

    def boxes_changed(self, step: int, rank: int) -> list[int]:
        """The boxes of that rank, by number, whose content differs after `step` from what it was before."""
        if step == 0:
            return []
        before, after = self.holdings[step - 1][rank], self.holdings[step][rank]
        return [
            number
            for number in range(len(self.boxes))
            if any(before[position] != after[position] for position in self._positions(number))
        ]

    def first_fault(self) -> str | None:
        """Where the run first went wrong, in words; None if nothing did."""
        return self.task.first_fault(self.holdings, self.is_over)

    def waiting(self) -> dict[int, str]:
        """Whom each rank of a deadlock waits for, in words, by rank."""
        if not isinstance(self.error, DeadlockError):
            return {}
        return {
            rank: "waits for a message" if wait.source is None else f"waits for rank {wait.source}"
            for rank, wait in self.error.waiting.items()
        }

    @cached_property
    def _steps(self) -> Steps:
        return steps_of(self.events, self.size)

    def _positions(self, box: int) -> range:
        stop = self.boxes[box + 1] if box + 1 < len(self.boxes) else self.task.length
        return range(self.boxes[box], stop)


Recorded = Run | SimulationError | Events
Source = Trace | Recorded


class Record(NamedTuple):
    """What is known of any run, also one with arrays of numbers.

    finished: when each rank's program ended, in virtual seconds; None if that is not known.
    error: the error that ended the run, or None.
    """

    events: Events
    size: int
    results: Sequence[object] | None = None
    finished: NDArray[np.float64] | None = None
    error: SimulationError | None = None


def trace(
    program: Program, size: int, length: int | None = None, collective: str | None = "all_reduce", root: int = 0
) -> Trace:
    """Run `program(rank, array)` on `size` ranks so that it can be drawn, also if the run ends in an error.

    Each rank's array has `length` elements (default: `size`, one for each chunk), which remember whose they are and
    what was added to them. A message takes one virtual second, however long it is, and adding takes none, so that the
    steps of a collective are seconds.

    collective: what the program has to do: "all_reduce", "reduce", "reduce_scatter", "broadcast", "scatter", "gather",
        "all_gather" or "all_to_all". It decides what a rank begins with and what is marked as wrong or missing. In a
        broadcast and a scatter only the root has an array, and the other ranks get None; in a gather and an all-gather
        each rank has its chunk of the array. None: whole arrays, and nothing is known about the end.

    Raises ValueError for fewer than 1 or more than MOST_RANKS ranks, TypeError for other wrong arguments.
    """
    if not callable(program):
        raise wrong("program", program, "the program itself, such as collectives.ring_all_reduce")
    world = World(size, Network(latency=1.0, seconds_per_byte=0.0))
    require_drawable(size)
    if length is not None:
        require_whole("length", length, least=1)
    collective_task = task(collective, size, size if length is None else length, root)
    try:
        run = world.run(program, collective_task.inputs(), keep_contents=True)
    except SimulationError as error:
        return Trace(collective_task, record_of(error).events, error=error)
    return Trace(collective_task, run.events, run.results)


def trace_of(source: Recorded, size: int | None = None, collective: str | None = "all_reduce", root: int = 0) -> Trace:
    """The trace of a run, of its events or of the error that ended it.

    The program must have run with `distlab.simulate.contributions` as inputs and `keep_contents=True`.

    size: the number of ranks; for events and errors, if some rank neither sent nor received.
    collective, root: what the program had to do, see `trace`.

    Raises ValueError for events without contents, from other inputs than `contributions`, or of more than MOST_RANKS
    ranks.
    """
    record = record_of(source, size)
    require_drawable(record.size)
    collective_task = task(collective, record.size, _length_of(record.events), root)
    return Trace(collective_task, record.events, record.results, record.error)


def record_of(source: Source, size: int | None = None) -> Record:
    """What is known of a run, from any of its forms; `size` is for events and errors, if some rank did nothing.

    Raises ValueError for an error that has no events, since it is not from a run; TypeError for anything else.
    """
    if not isinstance(source, Trace | Run | Events | SimulationError):
        raise TypeError(f"{type(source).__name__} is no run: draw what World.run gave, its events, or its error")
    if isinstance(source, Trace):
        return Record(source.events, source.size, source.results, error=source.error)
    if isinstance(source, Run):
        if source.messages and not len(source.events):
            raise WrongArgument("This run has kept no events to draw; run the program without keep_events=False.")
        return Record(source.events, len(source.results), source.results, source.finished)
    if isinstance(source, Events):
        return Record(source, _size(source, size))
    if source.events is None:
        raise ValueError(f"nothing ran before this error, so that there is nothing to draw: {source}")
    return Record(source.events, _size(source.events, size), error=source)


def require_drawable(size: int) -> None:
    """Raise ValueError for more ranks than a drawing of steps can have."""
    if size > MOST_RANKS:
        raise ValueError(f"{size} ranks are too many to draw, at most {MOST_RANKS}; simulate.World runs thousands")


def _size(events: Events, size: int | None) -> int:
    """`size`, or the number of ranks that did anything: one more than the highest number that occurs."""
    columns = events.columns
    active = 1 + int(max(columns["rank"].max(initial=0), columns["partner"].max(initial=0)))
    if size is None:
        return active
    require_whole("size", size, least=active)
    return size


def _length_of(events: Events) -> int:
    """The length of the inputs: one more than the highest position that is in anything sent or added."""
    highest = -1
    for event in events:
        if event.kind in ("send", "reduce"):
            for element in np.ravel(content_of(event).buffer):
                if isinstance(element, Contributions):
                    highest = max(highest, *element.positions)
    if highest < 0:
        raise ValueError("nothing here says what was added: give the program distlab.simulate.contributions as inputs")
    return highest + 1


def _continues(row: Holding, position: int) -> bool:
    """Whether the element at `position` is like the one before it: the same shares, each one position further on."""
    before, here = row[position - 1], row[position]
    if before is None or here is None:
        return before is here
    return here.counts == {(rank, place + 1): count for (rank, place), count in before.counts.items()}
