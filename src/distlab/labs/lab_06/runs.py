"""A student's collective on a virtual cluster that counts: what came of it, in how many steps, with how many bytes.

A message takes one virtual second, however long it is, and adding takes none, so that seconds are steps.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from distlab.collectives import chunks_of
from distlab.labs.answer import Answer
from distlab.labs.lab_06.tagged import Tags
from distlab.labs.verdict import Picture
from distlab.simulate import Events, Network, Rank, Run, SimulationError, World

STEPS = Network(latency=1.0, seconds_per_byte=0.0)


class RecordedWorld(World):
    """A world whose runs keep contents, so that they can be drawn."""

    def run(self, program: Callable, inputs: Iterable | None = None, keep_contents: bool = True) -> Run:
        """See `World.run`."""
        return super().run(program, inputs, keep_contents)


@dataclass(frozen=True)
class Attempt:
    """One run of a program that all ranks run.

    inputs, wanted: by rank, what it was given and what it has to return.  tags: how to read sums; None if the inputs
    are ordinary numbers.  results: by rank; None if `error` ended the run.
    """

    collective: str
    inputs: Sequence[np.ndarray]
    wanted: Sequence[np.ndarray]
    tags: Tags | None
    results: list | None
    events: Events
    error: SimulationError | None
    steps: int
    largest_bytes_sent: int

    @property
    def size(self) -> int:
        """The number of ranks."""
        return len(self.inputs)

    @property
    def length(self) -> int:
        """The elements of the whole array."""
        return max(map(len, self.inputs)) if self.collective != "all_gather" else sum(map(len, self.inputs))

    @property
    def is_right(self) -> bool:
        """Whether every rank returned what it should, an array of numbers of that shape."""
        return self.results is not None and all(map(_equal, self.results, self.wanted))

    @property
    def circumstances(self) -> str:
        """Such as "4 ranks, 5 elements"."""
        one = self.size == 1
        return f"{self.size} rank{'' if one else 's'}, {self.length} element{'' if self.length == 1 else 's'}"

    def picture(self) -> Picture:
        """The steps of the run, drawn; only for tagged inputs."""
        import matplotlib.pyplot as plt  # here, since it takes a second and is seldom needed

        from distlab import draw
        from distlab.draw.style import svg

        traced = self.tags.trace(self.collective, self.events, self.results, self.error)
        description = draw.describe_steps(traced)
        figure = draw.step_strip(traced)
        picture = Picture(svg(figure, description), description)
        plt.close(figure)  # or a notebook shows it once more
        return picture


def attempt_tagged(answer: Answer, name: str, collective: str, size: int, length: int) -> Attempt:
    """The program `name` with inputs that can be told apart in the results."""
    tags = Tags(size, length, in_chunks=collective == "all_gather")
    return _attempt(answer, name, collective, tags.inputs, tags)


def attempt(answer: Answer, name: str, collective: str, inputs: Sequence[np.ndarray]) -> Attempt:
    """The program `name` with these inputs."""
    return _attempt(answer, name, collective, inputs, None)


def inputs_afterwards(namespace: Mapping[str, object], name: str, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """What each rank's input holds when the program has ended; runs beside the student's code."""
    given = list(inputs)

    async def watched(rank: Rank, array: np.ndarray) -> object:
        given[rank.index] = array
        return await namespace[name](rank, array)

    World(len(inputs), STEPS).run(watched, inputs)
    return given


def _attempt(answer: Answer, name: str, collective: str, inputs: Sequence[np.ndarray], tags: Tags | None) -> Attempt:
    world = RecordedWorld(len(inputs), STEPS)
    wanted = WANTED[collective](inputs)
    try:
        run = answer.run(name, world, inputs)
    except SimulationError as error:
        return Attempt(collective, inputs, wanted, tags, None, error.events, error, 0, 0)
    sent = int(run.bytes_sent_by_rank.max())
    return Attempt(collective, inputs, wanted, tags, run.results, run.events, None, round(run.elapsed), sent)


def _equal(result: object, wanted: np.ndarray) -> bool:
    is_numbers = isinstance(result, np.ndarray) and result.dtype.kind in "iuf"
    return is_numbers and result.shape == wanted.shape and bool(np.all(result == wanted))


def _sums(inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    return [np.sum(inputs, axis=0)] * len(inputs)


def _own_chunk_of_sum(inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    return chunks_of(np.sum(inputs, axis=0), len(inputs))


def _concatenated(inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    return [np.concatenate(inputs)] * len(inputs)


WANTED: Mapping[str, Callable[[Sequence[np.ndarray]], list[np.ndarray]]] = {
    "all_reduce": _sums,
    "reduce_scatter": _own_chunk_of_sum,
    "all_gather": _concatenated,
}
