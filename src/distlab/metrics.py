"""Measuring a run: elapsed and CPU time, throughput, speed-up, and how busy every core and GPU was over time."""

import statistics
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import psutil

from distlab.devices import gpu_names, nvidia_smi


@dataclass
class Stopwatch:
    """Times a `with` block: `elapsed` and `cpu` in seconds; `cpu` sums the seconds of all threads of this process."""

    elapsed: float = field(default=float("nan"), init=False)
    cpu: float = field(default=float("nan"), init=False)

    def __enter__(self) -> "Stopwatch":
        self._start = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *exception: object) -> None:
        self.elapsed = time.perf_counter() - self._start[0]
        self.cpu = time.process_time() - self._start[1]


def throughput(images: int, seconds: float) -> float:
    """Images per second; `images` counts those truly processed, not those in the data set."""
    return images / seconds


def speedup(serial_seconds: float, parallel_seconds: float) -> float:
    """How many times shorter the parallel run was."""
    return serial_seconds / parallel_seconds


def efficiency(serial_seconds: float, parallel_seconds: float, devices: int) -> float:
    """The speed-up divided by the number of devices; 1 when nothing is lost."""
    return speedup(serial_seconds, parallel_seconds) / devices


def median_seconds(work: Callable[[], object], repeats: int = 5, warm_ups: int = 1) -> float:
    """The median elapsed time of `work()` in seconds over `repeats` calls, after `warm_ups` calls that do not count."""
    for _ in range(warm_ups):
        work()
    seconds = []
    for _ in range(repeats):
        with Stopwatch() as stopwatch:
            work()
        seconds.append(stopwatch.elapsed)
    return statistics.median(seconds)


class Seconds(NamedTuple):
    """The elapsed and the CPU time of a piece of work, in seconds."""

    elapsed: float
    cpu: float


def compare(candidates: Mapping[str, Callable[[], object]], repeats: int = 5) -> dict[str, Seconds]:
    """The median times of each of several pieces of work, by name.

    Each is done once before, as a warm-up. Then they take turns, so that a disturbance affects all of them.
    """
    for work in candidates.values():
        work()
    measured: dict[str, list[Stopwatch]] = {name: [] for name in candidates}
    for _ in range(repeats):
        for name, work in candidates.items():
            with Stopwatch() as stopwatch:
                work()
            measured[name].append(stopwatch)
    return {
        name: Seconds(statistics.median(run.elapsed for run in runs), statistics.median(run.cpu for run in runs))
        for name, runs in measured.items()
    }


class Utilisation:
    """Samples, while a `with` block runs, how busy each core and each GPU is.

    Afterwards `seconds` (samples,) is the time since the start, `cores` (samples, cores) and `gpus` (samples, GPUs) the
    percentage busy since the sample before. The cores' figures count every process of the machine; those of a GPU that
    does not report are not a number.
    """

    def __init__(self, interval: float = 0.1) -> None:
        """Sample every `interval` seconds."""
        self.interval = interval
        self._gpu_count = len(gpu_names())
        self._samples: list[tuple[float, list[float], list[float]]] = []
        self._stop = threading.Event()

    def __enter__(self) -> "Utilisation":
        self._start = time.perf_counter()
        self._core_count = len(psutil.cpu_percent(percpu=True))
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop.set()
        self._thread.join()
        count = len(self._samples)
        self.seconds = np.array([seconds for seconds, _, _ in self._samples], float)
        self.cores = np.array([cores for _, cores, _ in self._samples], float).reshape(count, self._core_count)
        self.gpus = np.array([gpus for _, _, gpus in self._samples], float).reshape(count, self._gpu_count)

    def _sample(self) -> None:
        psutil.cpu_percent(percpu=True)  # psutil counts from the last call of the same thread; the first gives zeros
        while not self._stop.wait(self.interval):
            busy_cores = psutil.cpu_percent(percpu=True)
            busy_gpus = _gpu_utilisation(self._gpu_count) if self._gpu_count else []
            self._samples.append((time.perf_counter() - self._start, busy_cores, busy_gpus))


def _gpu_utilisation(count: int) -> list[float]:
    """The percentage of each of `count` GPUs; not a number for one without a figure, as a GPU divided by MIG."""
    answer = nvidia_smi("--query-gpu=utilization.gpu", "--format=csv,noheader,nounits").splitlines()
    figures = [float(line) if line.isdecimal() else float("nan") for line in answer]
    return figures if len(figures) == count else [float("nan")] * count
