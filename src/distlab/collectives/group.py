"""Some of the ranks as a world of their own."""

from collections.abc import Awaitable, Sequence

import numpy as np

from distlab.simulate.arguments import check_peer
from distlab.simulate.interface import Rank


class GroupRank:
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

    def reduce(self, array: np.ndarray, other: np.ndarray) -> Awaitable[np.ndarray]:
        """Add `other` to `array` in place, and give `array`."""
        return self._rank.reduce(array, other)

    def compute(self, seconds: float) -> Awaitable[None]:
        """Do other work for `seconds`."""
        return self._rank.compute(seconds)

    def _member(self, index: int, verb: str) -> int:
        return self._members[check_peer(self.index, self.size, index, verb)]
