"""Ring all-reduces with one mistake each, and other programs that do not do what they should."""

from collections.abc import Callable

import numpy as np

from distlab.collectives import chunks_of
from distlab.simulate import Rank


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


async def sends_and_leaves(rank: Rank, array: np.ndarray) -> np.ndarray:
    await rank.send((rank.index + 1) % rank.size, array)
    return array
