"""How much memory a run's processes take, measured beside them."""

import threading
import time
from collections.abc import Iterable

import psutil

from distlab.runtime import processes

MIB = 2**20

LEAST_PAUSE = 0.5
# Reading the memory of many processes costs time that is taken from them: at most a fortieth.
PAUSE_PER_SECOND_OF_READING = 39


def memory(of: Iterable[psutil.Process]) -> int:
    """Bytes of memory that these processes use together; one that has ended counts 0.

    On Linux a page that n processes share counts 1/n for each; elsewhere it counts whole.
    """
    total = 0
    for process in of:
        try:
            total += process.memory_full_info().pss if psutil.LINUX else process.memory_info().rss
        except psutil.Error:
            continue
    return total


class ResourceUse:
    """Watches what carries `mark` (see `distlab.runtime.processes`) while a `with` block runs.

    peak_memory: bytes, the most of all samples.
    """

    def __init__(self, mark: str) -> None:
        """Nothing is measured before the block."""
        self.peak_memory = 0
        self._mark, self._stop = mark, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "ResourceUse":
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        pause = LEAST_PAUSE
        while not self._stop.wait(pause):
            before = time.perf_counter()
            self.peak_memory = max(self.peak_memory, memory(processes.alive(self._mark)))
            pause = max(LEAST_PAUSE, PAUSE_PER_SECOND_OF_READING * (time.perf_counter() - before))
