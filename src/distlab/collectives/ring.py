"""Collectives on a ring: at every step each rank sends to its right neighbour and receives from its left one."""

import numpy as np

from distlab.collectives.chunks import chunks_of
from distlab.simulate.interface import Rank


async def ring_all_reduce(rank: Rank, array: np.ndarray) -> np.ndarray:
    """Every rank gets the sum of all ranks' arrays; each sends only 2(p−1)/p times its array, however many ranks.

    array: any shape and dtype, the same on every rank; it is left as it is.
    Returns the sum on every rank, of the same shape and dtype.
    Cost, for equal chunks: 2(p−1)α + 2((p−1)/p)nβ + ((p−1)/p)nγ.
    Source: Patarasuk and Yuan, JPDC 69(2):117–124, 2009.
    """
    total = array.copy()
    chunks = chunks_of(total.reshape(-1), rank.size)
    right = (rank.index + 1) % rank.size
    left = (rank.index - 1) % rank.size

    # Reduce-scatter: a chunk travels round the ring and grows by one rank's share at each stop. After p − 1 steps this
    # rank holds chunk index + 1 with everybody's share.
    for step in range(rank.size - 1):
        outgoing = chunks[(rank.index - step) % rank.size]
        growing = chunks[(rank.index - step - 1) % rank.size]
        received = await rank.exchange(right, outgoing, left)
        await rank.reduce(growing, received)

    # All-gather: the finished chunks travel round the ring once more and replace the unfinished ones.
    for step in range(rank.size - 1):
        outgoing = chunks[(rank.index - step + 1) % rank.size]
        unfinished = chunks[(rank.index - step) % rank.size]
        unfinished[:] = await rank.exchange(right, outgoing, left)
    return total


async def reduce_scatter(rank: Rank, array: np.ndarray) -> np.ndarray:
    """Every rank gets its chunk of the sum of all ranks' arrays.

    array: at least one dimension, any dtype, the same shape and dtype on every rank; it is left as it is.
    Returns chunk number `rank.index` of `numpy.array_split(sum, p)`.
    Cost, for equal chunks: (p−1)α + ((p−1)/p)nβ + ((p−1)/p)nγ.
    Source: the first half of the ring all-reduce of Patarasuk and Yuan 2009, begun one chunk earlier.
    """
    chunks = chunks_of(array.copy(), rank.size)
    right = (rank.index + 1) % rank.size
    left = (rank.index - 1) % rank.size
    for step in range(rank.size - 1):
        outgoing = chunks[(rank.index - step - 1) % rank.size]
        growing = chunks[(rank.index - step - 2) % rank.size]
        received = await rank.exchange(right, outgoing, left)
        await rank.reduce(growing, received)
    return chunks[rank.index]


async def all_gather(rank: Rank, array: np.ndarray) -> np.ndarray:
    """Every rank gets every rank's rows, in order of rank.

    array: at least one dimension; the number of rows may differ between ranks, the rest of the shape and the dtype not.
    Returns the rows one below the other, on every rank.
    Cost, for equal arrays: (p−1)α + ((p−1)/p)nβ, n being the bytes that each rank has in the end.
    Source: the second half of the ring all-reduce of Patarasuk and Yuan 2009.
    """
    parts = [array] * rank.size
    right = (rank.index + 1) % rank.size
    left = (rank.index - 1) % rank.size
    for step in range(rank.size - 1):
        outgoing = parts[(rank.index - step) % rank.size]
        parts[(rank.index - step - 1) % rank.size] = await rank.exchange(right, outgoing, left)
    return np.concatenate(parts)
