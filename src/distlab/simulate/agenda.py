"""Which rank of the virtual cluster goes on next."""

from collections.abc import Iterator
from heapq import heappop, heappush


class Agenda(dict[float, list[int]]):
    """Which rank continues at which time; in order of time, and at the same time in order of rank.

    `agenda[time].append(index)` lets rank `index` go on at `time`. In a collective many ranks continue at the same
    time, so that there is one entry per time, not per rank: the list of its ranks. A heap has the times in order.
    """

    def __init__(self) -> None:
        """An empty agenda."""
        super().__init__()
        self._times: list[float] = []

    def __missing__(self, time: float) -> list[int]:
        heappush(self._times, time)
        ranks = self[time] = []
        return ranks

    def in_order(self) -> Iterator[tuple[float, list[int]]]:
        """The next time and its ranks, until nothing is left; ranks may be added while this runs."""
        while self._times:
            time = heappop(self._times)
            ranks = self.pop(time)
            ranks.sort()
            yield time, ranks
