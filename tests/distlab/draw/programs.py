"""The programs whose steps are tested, and the ring all-reduce in NumPy to compare with."""

from functools import partial

import numpy as np

from distlab import collectives

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
