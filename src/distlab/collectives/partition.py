"""Parts: the chunks of an array, one per rank, and a group of ranks that runs a collective among its members."""

from collections.abc import Awaitable, Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np

from distlab.simulate.errors import check_peer
from distlab.simulate.rank import NumberedRank, Rank


def first_row(length: int, parts: int, part: int) -> int:
    """The row at which chunk `part` begins, when `length` rows are cut into `parts` chunks as `chunks_of` does."""
    rows, longer = divmod(length, parts)
    return part * rows + min(part, longer)


def chunks_of(array: np.ndarray, parts: int) -> list[np.ndarray]:
    """Views of `parts` runs of rows of `array`; their lengths differ by at most one, and the longer ones come first.

    The same cut as `numpy.array_split(array, parts)`; with fewer rows than parts the last chunks are empty.
    """
    return [array[rows] for rows in chunk_rows(len(array), parts)]


@lru_cache(maxsize=16)
def chunk_rows(length: int, parts: int) -> tuple[slice, ...]:
    """The rows of each chunk, when `length` rows are cut into `parts` chunks as `chunks_of` does.

    All ranks of a world need the same ones, hence the cache.
    """
    starts = [first_row(length, parts, part) for part in range(parts + 1)]
    return tuple(slice(start, stop) for start, stop in pairwise(starts))


def own_copy(array: np.ndarray) -> np.ndarray:
    """A copy to add to, in C order, so that its `reshape(-1)` is a view; of NumPy's numbers, as `mean` gives them, too.

    NumPy cannot add to its numbers in place: they become arrays without dimensions.
    """
    return np.array(array) if isinstance(array, np.generic) else array.copy()


class GroupRank(NumberedRank):
    """A rank as a member of a group: a collective that is given it runs among the members alone.

    `index` and `size` count within the group, and so do the rank numbers in every operation.
    """

    def __init__(self, rank: Rank, members: Sequence[int]) -> None:
        """`members` are numbers of the world's ranks, the same sequence on every member; `rank` is one of them.

        Raises ValueError if `rank` is not a member.
        """
        self._rank = rank
        self._members = members
        self.index = members.index(rank.index)
        self.size = len(members)
        self.reduce, self.compute = rank.reduce, rank.compute  # what concerns no other rank

    @property
    def now(self) -> float:
        """Seconds since the start."""
        return self._rank.now

    def send(self, to: int, array: np.ndarray) -> Awaitable[None]:
        """Send `array` to member `to`."""
        return self._rank.send(self._member(to, "sends to"), array)

    def receive(self, source: int) -> Awaitable[np.ndarray]:
        """The next message of member `source`."""
        return self._rank.receive(self._member(source, "receives from"))

    async def receive_any(self) -> tuple[int, np.ndarray]:
        """The message that arrives first, as (member, array); ValueError if it is from outside the group."""
        source, array = await self._rank.receive_any()
        return self._members.index(source), array

    def exchange(self, to: int, array: np.ndarray, source: int) -> Awaitable[np.ndarray]:
        """Send `array` to member `to` and receive from member `source` at the same time."""
        return self._rank.exchange(self._member(to, "sends to"), array, self._member(source, "receives from"))

    def _member(self, index: int, verb: str) -> int:
        return self._members[check_peer(self.index, self.size, index, verb)]
