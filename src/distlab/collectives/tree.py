"""Collectives with a root, on a binomial tree: broadcast, reduce, scatter, gather."""

from typing import NamedTuple, cast

import numpy as np

from distlab.collectives.partition import first_row, own_copy
from distlab.simulate.rank import Rank


class Stage(NamedTuple):
    """One stage of the tree: ranks low…high−1 are halved at `middle`.

    `holder` answers for the whole range; from here on it answers for its own half alone, and `leader` for the other.
    """

    low: int
    middle: int
    high: int
    holder: int
    leader: int


def tree_stages(size: int, root: int, index: int) -> list[Stage]:
    """The stages that rank `index` lives through, from all ranks with `root` as holder down to rank `index` alone.

    There are at most ⌈lg size⌉. For 8 ranks and root 0, rank 5 sees 0 → 4, then 4 → 6, then 4 → 5.
    """
    low, high, holder = 0, size, root
    stages = []
    while high - low > 1:
        middle = (low + high + 1) // 2
        leader = middle if holder < middle else low
        stages.append(Stage(low, middle, high, holder, leader))
        if index < middle:
            high, holder = middle, min(holder, leader)
        else:
            low, holder = middle, max(holder, leader)
    return stages


async def broadcast(rank: Rank, array: np.ndarray | None, root: int = 0) -> np.ndarray:
    """Every rank gets the root's array.

    array: any shape and dtype on the root; not looked at on the other ranks.
    Returns the root's array on every rank (on the root the array itself).
    Cost: ⌈lg p⌉(α + nβ). Source: binomial tree; Thakur, Rabenseifner and Gropp 2005, section 4.
    """
    block = cast("np.ndarray", array)  # on a rank other than the root it is replaced before it is used
    for stage in tree_stages(rank.size, root, rank.index):
        if rank.index == stage.holder:
            await rank.send(stage.leader, block)
        elif rank.index == stage.leader:
            block = await rank.receive(stage.holder)
    return block


async def reduce(rank: Rank, array: np.ndarray, root: int = 0) -> np.ndarray | None:
    """The root gets the sum of all ranks' arrays: the broadcast's tree, walked from the leaves to the root.

    array: any shape and dtype, the same on every rank; it is left as it is.
    Returns the sum on the root, of the same shape and dtype, and None elsewhere.
    Cost: ⌈lg p⌉(α + nβ + nγ); for p ≠ 2^k at most, since a rank can receive while it adds.
    Source: binomial tree; Thakur, Rabenseifner and Gropp 2005, section 4.
    """
    total = own_copy(array)
    for stage in reversed(tree_stages(rank.size, root, rank.index)):
        if rank.index == stage.leader:
            await rank.send(stage.holder, total)
        elif rank.index == stage.holder:
            received = await rank.receive(stage.leader)
            await rank.reduce(total, received)
    return total if rank.index == root else None


async def scatter(rank: Rank, array: np.ndarray | None, root: int = 0) -> np.ndarray:
    """Every rank gets its chunk of the root's rows: at each stage the holder hands over the other half's rows.

    array: any shape of at least one dimension and any dtype on the root; not looked at on the other ranks.
    Returns chunk number `rank.index` of `numpy.array_split(array, p)`.
    Cost, for root 0 and equal chunks: ⌈lg p⌉α + ((p−1)/p)nβ, n being the root's bytes.
    Source: binomial tree; Thakur, Rabenseifner and Gropp 2005, section 4.
    """
    block = cast("np.ndarray", array)  # on a rank other than the root it is replaced before it is used
    for stage in tree_stages(rank.size, root, rank.index):
        if rank.index == stage.holder:
            cut = first_row(len(block), stage.high - stage.low, stage.middle - stage.low)
            lower, upper = block[:cut], block[cut:]
            block, others = (lower, upper) if stage.holder < stage.middle else (upper, lower)
            await rank.send(stage.leader, others)
        elif rank.index == stage.leader:
            block = await rank.receive(stage.holder)
    return block


async def gather(rank: Rank, array: np.ndarray, root: int = 0) -> np.ndarray | None:
    """The root gets every rank's rows, in order of rank: the scatter's tree, walked from the leaves to the root.

    array: at least one dimension; the number of rows may differ between ranks, the rest of the shape and the dtype not.
    Returns the rows one below the other on the root, and None elsewhere.
    Cost, for root 0 and equal arrays: ⌈lg p⌉α + ((p−1)/p)nβ, n being the bytes that the root has in the end.
    Source: binomial tree; Thakur, Rabenseifner and Gropp 2005, section 4.
    """
    block = array
    for stage in reversed(tree_stages(rank.size, root, rank.index)):
        if rank.index == stage.leader:
            await rank.send(stage.holder, block)
        elif rank.index == stage.holder:
            received = await rank.receive(stage.leader)
            in_order = [block, received] if stage.holder < stage.middle else [received, block]
            block = np.concatenate(in_order)
    return block if rank.index == root else None
