"""A student's collective on a virtual cluster that counts: what it returned, in how many steps, with how many bytes.

A message takes one virtual second, however long it is, and adding takes none, so that seconds are steps.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from lab_06.tagged import Tags

from distlab.collectives import chunks_of
from distlab.labs.answer import Answer
from distlab.labs.plain_data import Array, Plain
from distlab.labs.verdict import Picture
from distlab.simulate import Events, Network, Run, SimulationError, World

STEPS = Network(latency=1.0, seconds_per_byte=0.0)
_MOST_STEPS, _LONGEST_DESCRIPTION = 20, 4000  # of a picture: a program may take any number of steps


class RecordedWorld(World):
    """A world whose runs keep contents, so that they can be drawn."""

    def run(
        self,
        program: Callable[..., Any],
        inputs: Iterable[Any] | None = None,
        keep_contents: bool = True,
        keep_events: bool = True,
    ) -> Run:
        """See `World.run`."""
        return super().run(program, inputs, keep_contents, keep_events)


@dataclass(frozen=True)
class Attempt:
    """One run of a program that all ranks run.

    inputs, expected: by rank, its input and what it has to return.  tags: how to read sums; None if the inputs are
    ordinary numbers.  results: by rank; none if `error` ended the run.
    """

    collective: str
    inputs: Sequence[Array]
    expected: Sequence[Array]
    tags: Tags | None
    events: Events | None
    error: SimulationError | None = None
    results: Sequence[Plain] = ()
    steps: int = 0
    largest_bytes_sent: int = 0

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
        return self.error is None and all(map(_equal, self.results, self.expected))

    @property
    def arrays(self) -> list[Array]:
        """The results that are arrays."""
        return [result for result in self.results if isinstance(result, np.ndarray)]

    @property
    def circumstances(self) -> str:
        """Such as "4 ranks, 5 elements"."""
        counts = ((self.size, "rank"), (self.length, "element"))
        return ", ".join(f"{count} {noun}{'' if count == 1 else 's'}" for count, noun in counts)

    @property
    def picture(self) -> Callable[[], Picture] | None:
        """Draws the steps of the run; None unless its inputs were tagged."""
        return None if self.tags is None or self.events is None else partial(_draw, self, self.tags, self.events)


def attempt_tagged(answer: Answer, name: str, collective: str, size: int, length: int) -> Attempt:
    """The program `name` with inputs that can be recognised in the results."""
    tags = Tags(size, length, in_chunks=collective == "all_gather")
    return attempt(answer, name, collective, tags.inputs, tags)


def attempt(answer: Answer, name: str, collective: str, inputs: Sequence[Array], tags: Tags | None = None) -> Attempt:
    """The program `name` with these inputs."""
    expected = EXPECTED[collective](inputs)
    try:
        run = answer.run(name, RecordedWorld(len(inputs), STEPS), inputs)
    except SimulationError as error:
        return Attempt(collective, inputs, expected, tags, error.events, error)
    sent = int(run.bytes_sent_by_rank.max())
    return Attempt(collective, inputs, expected, tags, run.events, None, run.results, round(run.elapsed), sent)


def _draw(run: Attempt, tags: Tags, events: Events) -> Picture:
    import matplotlib.pyplot as plt  # here, since it takes a second and is seldom needed

    from distlab.draw.style import svg

    trace = tags.trace(run.collective, events, None if run.error else run.results, run.error)
    description = trace.describe()[:_LONGEST_DESCRIPTION]
    figure = trace.strip(range(min(trace.last, _MOST_STEPS) + 1))
    picture = Picture(svg(figure, description), description)
    plt.close(figure)  # or a notebook displays it again
    return picture


def _equal(result: Plain, expected: Array) -> bool:
    if not isinstance(result, np.ndarray) or result.dtype.kind not in "iuf":
        return False
    return result.shape == expected.shape and bool(np.all(result == expected))


def _sums(inputs: Sequence[Array]) -> list[Array]:
    return [np.sum(inputs, axis=0)] * len(inputs)


def _own_chunk_of_sum(inputs: Sequence[Array]) -> list[Array]:
    return chunks_of(np.sum(inputs, axis=0), len(inputs))


def _concatenated(inputs: Sequence[Array]) -> list[Array]:
    return [np.concatenate(inputs)] * len(inputs)


EXPECTED: Mapping[str, Callable[[Sequence[Array]], list[Array]]] = {
    "all_reduce": _sums,
    "reduce_scatter": _own_chunk_of_sum,
    "all_gather": _concatenated,
}
