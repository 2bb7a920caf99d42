"""Whole numbers that say, in any sum, which elements of which rank are in it and how often.

Each element of each rank's array is another power of eight, so that the digits of a sum count what was added. It is
what `distlab.simulate.contributions` does for the pictures, in plain data.
"""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from distlab.collectives import chunks_of
from distlab.labs.plain_data import Array, Plain
from distlab.simulate import Contributions, Events, SimulationError
from distlab.simulate.events import Content

if TYPE_CHECKING:
    from distlab.draw import Trace

BASE = 8
MOST_ELEMENTS = 20  # of all ranks together: 20 digits of 3 bits fit into an int64
_MOST_READ = 5 * MOST_ELEMENTS  # of an array, which may have millions: no sensible program sends more

Shares = Counter[tuple[int, int]]
"""What is in a sum: (rank, position) of each element that was added, with how often."""


class Tags:
    """The inputs of a run, and how to read what happened to them.

    inputs: one int64 array per rank; each has `length` elements, or, with `in_chunks`, the rank's chunk of `length`.
    """

    def __init__(self, size: int, length: int, in_chunks: bool = False) -> None:
        """Raises ValueError if the inputs hold more than MOST_ELEMENTS elements together."""
        positions = list(chunks_of(np.arange(length), size)) if in_chunks else [np.arange(length)] * size
        self.size, self.length, self.in_chunks = size, length, in_chunks
        self._owners = [(rank, position) for rank, own in enumerate(positions) for position in own.tolist()]
        if len(self._owners) > MOST_ELEMENTS:
            raise ValueError(f"{len(self._owners)} elements, but only {MOST_ELEMENTS} can be distinguished")
        tags = BASE ** np.arange(len(self._owners), dtype=np.int64)
        self.inputs = np.split(tags, np.cumsum([len(own) for own in positions])[:-1])

    def read(self, array: Array) -> list[Shares]:
        """What is in each of the first hundred elements of `array`; nothing where it is not a sum of these inputs."""
        values = np.ravel(array)[:_MOST_READ].tolist()
        return [self._read(value) if array.dtype.kind in "biuf" else Counter() for value in values]

    def _read(self, value: float) -> Shares:
        if not np.isfinite(value) or value != int(value) or not 0 <= value < BASE ** len(self._owners):
            return Counter()
        return +Counter({owner: int(value) // BASE**place % BASE for place, owner in enumerate(self._owners)})

    def trace(
        self, collective: str, events: Events, results: Sequence[Plain] | None, error: SimulationError | None
    ) -> "Trace":
        """A run with these inputs, that kept contents, as `distlab.draw` draws it."""
        from distlab.draw import Trace  # here, since matplotlib takes a second and is seldom needed
        from distlab.draw.collective_tasks import task

        contents = {
            event.operation: Content(self._drawn(event.content), self._drawn(event.buffer), event.position)
            for event in events
            if event.kind in ("send", "reduce") and event.content is not None and event.position is not None
        }
        arrays = [result for result in results or [] if isinstance(result, np.ndarray) and result.dtype.kind in "iu"]
        are_sums = results is not None and len(arrays) == len(results)  # a sum that was divided says nothing
        drawn_results = [self._drawn(array) for array in arrays] if are_sums else None
        drawn_events = Events(lambda: events.columns, contents)
        return Trace(task(collective, self.size, self.length), drawn_events, drawn_results, error)

    def _drawn(self, array: Array | None) -> Array:
        if array is None:
            return np.empty(0, object)
        drawn = np.empty(min(array.size, _MOST_READ), object)
        for place, shares in enumerate(self.read(array) if array.dtype.kind in "iu" else []):
            drawn[place] = Contributions(shares) if shares else None
        return drawn
