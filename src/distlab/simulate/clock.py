"""The agenda of a run: which rank goes on at which virtual time."""

from collections.abc import Iterator
from heapq import heappop, heappush


class Agenda:
    """Who goes on when; handed out in order of time, at the same time in order of rank.

    In a collective whole crowds of ranks go on at one and the same time, so that there is one entry per time, not per
    rank: a heap of the times, and for each time the list of its ranks.
    """

    def __init__(self) -> None:
        """An empty agenda."""
        self._times: list[float] = []
        self._ranks_at: dict[float, list[int]] = {}

    def add(self, index: int, time: float) -> None:
        """Let rank `index` go on at `time`."""
        ranks = self._ranks_at.get(time)
        if ranks is None:
            self._ranks_at[time] = [index]
            heappush(self._times, time)
        else:
            ranks.append(index)

    def __iter__(self) -> Iterator[tuple[float, list[int]]]:
        """The next time and its ranks, until nothing is left; ranks may be added while this runs."""
        while self._times:
            time = heappop(self._times)
            ranks = self._ranks_at.pop(time)
            ranks.sort()
            yield time, ranks
