"""How much memory a run's processes take, measured beside them."""

import threading

import psutil

from distlab.runtime import processes

MIB = 2**20
# Reading the memory of many processes takes a tenth of a second, and that from them.
SECONDS_BETWEEN_READINGS = 2.0


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
        while not self._stop.wait(SECONDS_BETWEEN_READINGS):
            self.peak_memory = max(self.peak_memory, sum(map(_memory, processes.alive(self._mark))))


def _memory(process: psutil.Process) -> int:
    """Bytes of its memory, 0 if it has ended. On Linux a page that n processes share counts 1/n for each."""
    try:
        return process.memory_full_info().pss if psutil.LINUX else process.memory_info().rss
    except psutil.Error:
        return 0
