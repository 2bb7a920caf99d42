"""Whether the ranks of a measurement had the cores that they needed, or other programs took a part of them."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psutil

from distlab import devices


@dataclass(frozen=True)
class CoreUse:
    """What one rank saw of its machine; shares are of the time that it watched.

    needed: cores that it can keep busy. own: what it used, 1 for one core. busy: what all programs used of each core
    that it may use, by number; empty where the system does not say.
    """

    machine: str
    needed: int
    own: float
    busy: dict[int, float]


class CoreWatch:
    """Watches the cores of this process from when it is made."""

    def __init__(self) -> None:
        self._start, self._own, self._busy = time.perf_counter(), time.process_time(), _busy_seconds()

    def use(self, machine: str, needed: int) -> CoreUse:
        """Until now."""
        seconds = time.perf_counter() - self._start
        busy = {core: (now - self._busy[core]) / seconds for core, now in _busy_seconds().items()}
        return CoreUse(machine, needed, (time.process_time() - self._own) / seconds, busy)


def share_taken(uses: Sequence[CoreUse]) -> float:
    """What other programs took of the cores that the ranks of a machine needed, from 0 to 1; that of the worst one.

    Cores that the ranks leave idle are free for others. Ranks that share their cores with each other lack nothing.
    """
    shares = [0.0]
    for machine in {use.machine for use in uses}:
        ranks = [use for use in uses if use.machine == machine]
        busy = {core: share for rank in ranks for core, share in rank.busy.items()}
        if busy:
            needed = min(sum(rank.needed for rank in ranks), len(busy))
            others = sum(busy.values()) - sum(rank.own for rank in ranks)
            shares.append(min((others - (len(busy) - needed)) / needed, 1.0))
    return max(shares)


def _busy_seconds() -> dict[int, float]:
    """How long each allowed core has worked, for programs of this machine or, if it is virtual, for others."""
    of_cores: list[Any] = psutil.cpu_times(percpu=True)
    allowed = devices.allowed_cores()
    if allowed[-1] >= len(of_cores):
        return {}
    times = {core: of_cores[core] for core in allowed}
    return {core: each.user + each.nice + each.system + getattr(each, "steal", 0.0) for core, each in times.items()}
