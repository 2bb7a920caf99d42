"""Collectives without a root: at every step each rank sends to one rank and receives from one.

On a ring these are always its right and its left neighbour; in all-to-all they change from step to step.
"""

import numpy as np

from distlab.collectives.partition import chunk_rows, chunks_of, own_copy
from distlab.simulate.rank import Rank


async def ring_all_reduce(rank: Rank, array: np.ndarray) -> np.ndarray:
    """Every rank gets the sum of all ranks' arrays; each sends only 2(p−1)/p times its array, however many ranks.

    array: any shape and dtype, the same on every rank; it is left as it is.
    Returns the sum on every rank, of the same shape and dtype.
    Cost, for equal chunks: 2(p−1)α + 2((p−1)/p)nβ + ((p−1)/p)nγ.
    Source: Patarasuk and Yuan, JPDC 69(2):117–124, 2009.
    """
    total = own_copy(array)
    flat = total.reshape(-1)
    # Views are made when they are needed: p ranks with all their p chunks would fill more memory than the arrays.
    rows = chunk_rows(len(flat), rank.size)
    right = (rank.index + 1) % rank.size
    left = (rank.index - 1) % rank.size

    # Reduce-scatter: a chunk travels round the ring and grows by one rank's share at each stop. After p − 1 steps this
    # rank holds chunk index + 1 with everybody's share. (Numbers below 0 count from the last chunk.)
    outgoing = flat[rows[rank.index]]
    for step in range(rank.size - 1):
        growing = flat[rows[rank.index - step - 1]]
        received = await rank.exchange(right, outgoing, left)
        await rank.reduce(growing, received)
        outgoing = growing

    # All-gather: the finished chunks travel round the ring once more and replace the unfinished ones.
    for step in range(rank.size - 1):
        unfinished = flat[rows[rank.index - step]]
        unfinished[...] = await rank.exchange(right, outgoing, left)
        outgoing = unfinished
    return total


async def reduce_scatter(rank: Rank, array: np.ndarray) -> np.ndarray:
    """Every rank gets its chunk of the sum of all ranks' arrays.

    array: at least one dimension, any dtype, the same shape and dtype on every rank; it is left as it is.
    Returns chunk number `rank.index` of `numpy.array_split(sum, p)`.
    Cost, for equal chunks: (p−1)α + ((p−1)/p)nβ + ((p−1)/p)nγ.
    Source: the first half of the ring all-reduce of Patarasuk and Yuan 2009, begun one chunk earlier.
    """
    chunks = chunks_of(own_copy(array), rank.size)
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
