"""Collectives whose root is rank 0, on a binomial tree: broadcast, reduce, scatter, gather."""

from typing import NamedTuple, cast

import numpy as np

from distlab.collectives.partition import first_row, own_copy
from distlab.simulate.rank import Rank


class Stage(NamedTuple):
    """One stage of the tree: rank `low` has answered for ranks low…high−1; from here on `middle` has the upper half."""

    low: int
    middle: int
    high: int


def tree_stages(size: int, index: int) -> list[Stage]:
    """The stages that rank `index` lives through, from all ranks under rank 0 down to rank `index` alone.

    There are at most ⌈lg size⌉. For 8 ranks, rank 5 sees 0 → 4, then 4 → 6, then 4 → 5.
    """
    low, high = 0, size
    stages = []
    while high - low > 1:
        middle = (low + high + 1) // 2
        stages.append(Stage(low, middle, high))
        low, high = (low, middle) if index < middle else (middle, high)
    return stages


async def broadcast(rank: Rank, array: np.ndarray | None) -> np.ndarray:
    """Every rank gets the array of rank 0.

    array: any shape and dtype on rank 0; not looked at on the other ranks.
    Returns the array of rank 0 on every rank (on rank 0 the array itself).
    Cost: ⌈lg p⌉(α + nβ). Source: binomial tree; Thakur, Rabenseifner and Gropp 2005, section 4.
    """
    block = cast("np.ndarray", array)  # on a rank other than 0 it is replaced before it is used
    for stage in tree_stages(rank.size, rank.index):
        if rank.index == stage.low:
            await rank.send(stage.middle, block)
        elif rank.index == stage.middle:
            block = await rank.receive(stage.low)
    return block


async def reduce(rank: Rank, array: np.ndarray) -> np.ndarray | None:
    """Rank 0 gets the sum of all ranks' arrays: the broadcast's tree, walked from the leaves to the root.

    array: any shape and dtype, the same on every rank; it is left as it is.
    Returns the sum on rank 0, of the same shape and dtype, and None elsewhere.
    Cost: ⌈lg p⌉(α + nβ + nγ); for p ≠ 2^k at most, since a rank can receive while it adds.
    Source: binomial tree; Thakur, Rabenseifner and Gropp 2005, section 4.
    """
    total = own_copy(array)
    for stage in reversed(tree_stages(rank.size, rank.index)):
        if rank.index == stage.middle:
            await rank.send(stage.low, total)
        elif rank.index == stage.low:
            received = await rank.receive(stage.middle)
            await rank.reduce(total, received)
    return total if rank.index == 0 else None


async def scatter(rank: Rank, array: np.ndarray | None) -> np.ndarray:
    """Every rank gets its chunk of the rows of rank 0: at each stage the upper half's rows are handed over.

    array: any shape of at least one dimension and any dtype on rank 0; not looked at on the other ranks.
    Returns chunk number `rank.index` of `numpy.array_split(array, p)`.
    Cost, for equal chunks: ⌈lg p⌉α + ((p−1)/p)nβ, n being the bytes of rank 0.
    Source: binomial tree; Thakur, Rabenseifner and Gropp 2005, section 4.
    """
    block = cast("np.ndarray", array)  # on a rank other than 0 it is replaced before it is used
    for stage in tree_stages(rank.size, rank.index):
        if rank.index == stage.low:
            cut = first_row(len(block), stage.high - stage.low, stage.middle - stage.low)
            await rank.send(stage.middle, block[cut:])
            block = block[:cut]
        elif rank.index == stage.middle:
            block = await rank.receive(stage.low)
    return block


async def gather(rank: Rank, array: np.ndarray) -> np.ndarray | None:
    """Rank 0 gets every rank's rows, in order of rank: the scatter's tree, walked from the leaves to the root.

    array: at least one dimension; the number of rows may differ between ranks, the rest of the shape and the dtype not.
    Returns the rows one below the other on rank 0, and None elsewhere.
    Cost, for equal arrays: ⌈lg p⌉α + ((p−1)/p)nβ, n being the bytes that rank 0 has in the end.
    Source: binomial tree; Thakur, Rabenseifner and Gropp 2005, section 4.
    """
    block = array
    for stage in reversed(tree_stages(rank.size, rank.index)):
        if rank.index == stage.middle:
            await rank.send(stage.low, block)
        elif rank.index == stage.low:
            block = np.concatenate([block, await rank.receive(stage.middle)])
    return block if rank.index == 0 else None
