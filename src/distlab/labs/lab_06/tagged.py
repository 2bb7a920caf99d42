"""Whole numbers that say, in any sum, which elements of which rank are in it and how often.

They are to the judges what `distlab.simulate.contributions` is to the pictures, but plain data: each element of each
rank's array is a power of eight of its own, so that the digits of a sum count what was added.
"""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from distlab.collectives import chunks_of
from distlab.simulate import Contributions, Events, SimulationError
from distlab.simulate.events import Content

if TYPE_CHECKING:
    from distlab.draw import Trace

BASE = 8
MOST_ELEMENTS = 20  # of all ranks together: 20 digits of 3 bits fit into an int64

Shares = Counter[tuple[int, int]]
"""What is in a sum: (rank, position) of each element that was added, with how often."""


class Tags:
    """The inputs of a run, and how to read what became of them.

    inputs: one int64 array per rank; each has `length` elements, or, `in_chunks`, the rank's chunk of so many.
    """

    def __init__(self, size: int, length: int, in_chunks: bool = False) -> None:
        """Raises ValueError if the inputs hold more than MOST_ELEMENTS elements together."""
        positions = list(chunks_of(np.arange(length), size)) if in_chunks else [np.arange(length)] * size
        self.size, self.length, self.in_chunks = size, length, in_chunks
        self._owners = [(rank, position) for rank, own in enumerate(positions) for position in own.tolist()]
        if len(self._owners) > MOST_ELEMENTS:
            raise ValueError(f"{len(self._owners)} elements, but only {MOST_ELEMENTS} can be told apart")
        tags = BASE ** np.arange(len(self._owners), dtype=np.int64)
        self.inputs = np.split(tags, np.cumsum([len(own) for own in positions])[:-1])

    def read(self, array: np.ndarray) -> list[Shares]:
        """What is in each element of `array`; nothing where it is no sum of these inputs."""
        return [self._read(value) for value in np.ravel(array).tolist()]

    def _read(self, value: float) -> Shares:
        if not np.isfinite(value) or value != int(value) or not 0 <= value < BASE ** len(self._owners):
            return Counter()
        return +Counter({owner: int(value) // BASE**place % BASE for place, owner in enumerate(self._owners)})

    def trace(
        self, collective: str, events: Events, results: Sequence | None, error: SimulationError | None
    ) -> "Trace":
        """A run with these inputs, that kept contents, as `distlab.draw` draws it."""
        from distlab.draw import Trace  # here, since matplotlib takes a second and is seldom needed
        from distlab.draw.collective_tasks import task

        contents = {
            event.operation: Content(self._shown(event.content), self._shown(event.buffer), event.position)
            for event in events
            if event.kind in ("send", "reduce") and event.content is not None
        }
        shown = Events(lambda: events.columns, contents)
        is_known = results is not None and all(
            isinstance(result, np.ndarray) and result.dtype.kind in "iu" for result in results
        )
        held = [self._shown(result) for result in results] if is_known else None  # a sum that was divided tells nothing
        return Trace(task(collective, self.size, self.length), shown, held, error)

    def _shown(self, array: object) -> np.ndarray | None:
        if not isinstance(array, np.ndarray):
            return None
        shown = np.empty(array.size, object)
        for place, shares in enumerate(self.read(array) if array.dtype.kind in "iu" else []):
            shown[place] = Contributions(shares) if shares else None
        return shown
