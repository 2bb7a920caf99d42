"""A run of a program with arrays that remember what was added: its steps and their pictures, even if it is wrong."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

from matplotlib.figure import Figure

from distlab.draw.collective_tasks import task
from distlab.draw.steps import animation, strip
from distlab.draw.steps.history import History
from distlab.runtime.arguments import WrongArgument
from distlab.simulate import Events, Network, SimulationError, World
from distlab.simulate.world import Program

MOST_RANKS = 16
# All steps of a ring of 10 ranks; a strip of them is a metre and a half high.
MOST_BOXES = 20_000
"""In a drawing: with more, a chunk's segments are thinner than a line, and a strip takes half a minute."""


@dataclass(frozen=True)
class Trace(History):
    """What a program did on the virtual cluster, and the pictures of it."""

    def strip(self, steps: Iterable[int] | None = None) -> Figure:
        """What each rank holds after each step, as the program really ran: a column per step, a row per rank.

        A rank's row has the chunks of its array. The coloured, numbered segments of a chunk are the ranks whose share
        has been added so far, each at its own place, so that an empty place is a share that has yet to come. A small
        triangle below a chunk says that it is sent in the next step, one above it that the step changed it; arrows lead
        from the sender to the receiver. A thick frame is a finished chunk. What is wrong (a share added twice, a share
        of another chunk, at the end a missing one) is black, or a dash, in a dashed frame with an exclamation mark, and
        a line below the picture says where it first went wrong. A run that ended in an error is drawn up to where it
        stopped.

        steps: the columns to draw; 0 is the start. Default: all of them, in as many lines as needed.

        Raises ValueError for steps that the run does not have, and for more steps of so many ranks than anybody can
        look at.
        """
        columns = list(range(self.last + 1) if steps is None else steps)
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
