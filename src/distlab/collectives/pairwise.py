"""Collectives in which the partner changes from step to step: all-to-all and barrier."""

import numpy as np

from distlab.collectives.chunks import chunks_of
from distlab.simulate.interface import Rank


async def all_to_all(rank: Rank, array: np.ndarray) -> np.ndarray:
    """Chunk j of rank i becomes chunk i of rank j: a transposition across ranks.

    array: at least one dimension; the rest of the shape and the dtype must be the same on every rank.
    Returns, one below the other and in order of rank, what each rank has for this one: chunk number `rank.index` of its
    `numpy.array_split(array, p)`.
    Cost, for equal chunks: (p−1)α + ((p−1)/p)nβ.
    Source: pairwise exchange; Thakur, Rabenseifner and Gropp 2005, section 4.3.
    """
    chunks = chunks_of(array, rank.size)
    parts = [chunks[rank.index]] * rank.size
    for distance in range(1, rank.size):
        to = (rank.index + distance) % rank.size
        source = (rank.index - distance) % rank.size
        parts[source] = await rank.exchange(to, chunks[to], source)
    return np.concatenate(parts)


async def barrier(rank: Rank) -> None:
    """No rank leaves before every rank has entered.

    After the step of distance d a rank knows, directly or by hearsay, of 2d ranks: itself and the 2d − 1 to its left.
    Cost: ⌈lg p⌉α, with messages of 0 bytes.
    Source: dissemination barrier; Hensgen, Finkel and Manber, Int. J. Parallel Programming 17(1), 1988.
    """
    nothing = np.empty(0, np.uint8)
    distance = 1
    while distance < rank.size:
        await rank.exchange((rank.index + distance) % rank.size, nothing, (rank.index - distance) % rank.size)
        distance *= 2
