"""The programs whose steps are tested, right and wrong ones; the ring in NumPy; how many shapes a strip has."""

from collections import Counter
from collections.abc import Callable
from functools import partial

import numpy as np
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure

from distlab import collectives
from distlab.collectives import chunks_of
from distlab.simulate import Rank

ALL_REDUCE = collectives.ALL_REDUCE | {
    "hierarchical": partial(collectives.hierarchical_all_reduce, ranks_per_host=2),
    "hierarchical, three ranks per host": partial(collectives.hierarchical_all_reduce, ranks_per_host=3),
}
MOVING = ("reduce", "reduce_scatter", "broadcast", "scatter", "gather", "all_gather", "all_to_all")


def ring_by_numpy(size: int) -> np.ndarray:
    """By step, rank, chunk and share, whether the share has been added, in a ring all-reduce that NumPy simulates."""
    has = np.zeros((size, size, size), bool)
    has[np.arange(size), :, np.arange(size)] = True
    after = [has.copy()]
    for step in range(2 * (size - 1)):
        before = has.copy()
        for rank in range(size):
            chunk = (rank - step - 1) % size if step < size - 1 else (rank - step + size - 1) % size
            incoming = before[(rank - 1) % size, chunk]
            has[rank, chunk] = has[rank, chunk] | incoming
        after.append(has.copy())
    return np.array(after)


def ring(
    off_by_one: bool = False, steps_left_out: int = 0, twice_on: int | None = None, leaves: int | None = None
) -> Callable:
    """A ring all-reduce with a known mistake."""

    async def program(rank: Rank, array: np.ndarray) -> np.ndarray:
        total = array.copy()
        chunks = chunks_of(total, rank.size)
        right, left = (rank.index + 1) % rank.size, (rank.index - 1) % rank.size
        for step in range(rank.size - 1):
            growing = chunks[(rank.index - step - 1 + off_by_one) % rank.size]
            received = await rank.exchange(right, chunks[(rank.index - step) % rank.size], left)
            await rank.reduce(growing, received)
            if rank.index == twice_on and step == 1:
                await rank.reduce(growing, received)
        if rank.index == leaves:
            return total
        for step in range(rank.size - 1 - steps_left_out):
            outgoing = chunks[(rank.index - step + 1) % rank.size]
            chunks[(rank.index - step) % rank.size][:] = await rank.exchange(right, outgoing, left)
        return total

    return program


FRAMES = ("chunk", "no chunk", "finished chunk", "wrong chunk")


def drawn(figure: Figure) -> Counter:
    """How many shapes of each name the strip has, its legend left out."""
    counts = Counter()
    for collection in figure.axes[0].collections:
        if isinstance(collection, PathCollection) and collection.get_label() != "sample":
            counts[collection.get_label()] += len(collection.get_offsets())
    return counts
