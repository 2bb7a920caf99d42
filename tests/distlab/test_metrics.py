"""Times, throughput, speed-up, efficiency, and the recording of how busy the devices were."""

import threading
import time
from collections.abc import Callable

import numpy as np
import psutil
import pytest

from distlab import metrics
from distlab.metrics import Stopwatch, Utilisation

CORES = len(psutil.cpu_percent(percpu=True))


def record(samples: int) -> Utilisation:
    """A recording with at least so many samples, however slow the machine is."""
    with Utilisation(interval=0.01) as recorded:
        deadline = time.monotonic() + 60
        while len(recorded._samples) < samples and time.monotonic() < deadline:
            time.sleep(0.005)
    return recorded


def use_processor(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_processor_time_counts_every_thread() -> None:
    threads = [threading.Thread(target=use_processor, args=(0.1,)) for _ in range(2)]
    with Stopwatch() as stopwatch:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert stopwatch.cpu >= 0.2


def test_halving_the_time_on_four_devices_is_half_efficient() -> None:
    assert metrics.throughput(60_000, 4) == 15_000
    assert metrics.speedup(8, 4) == 2
    assert metrics.efficiency(8, 4, devices=4) == 0.5


def test_the_median_leaves_warm_ups_and_outliers_out(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = 0.0
    durations = iter([100.0, 100.0, 3.0, 50.0, 1.0, 2.0, 4.0])

    def work() -> None:
        nonlocal clock
        clock += next(durations)

    monkeypatch.setattr(metrics.time, "perf_counter", lambda: clock)
    assert metrics.median_seconds(work, repeats=5, warm_ups=2) == 3
    assert next(durations, None) is None


def test_each_sample_has_a_time_and_figures_for_cores_and_gpus_also_where_a_gpu_does_not_report(
    nvidia_smi: Callable[[str], None],
) -> None:
    of_two = 'case "$1" in --query-gpu=name) printf "A\\nA\\n" ;; --query-gpu=utilization.gpu) printf "{}" ;; esac'
    nvidia_smi(of_two.format("97\\n3\\n"))
    recorded = record(samples=4)
    samples = len(recorded.seconds)
    assert samples >= 4 and recorded.seconds[0] > 0 and np.all(np.diff(recorded.seconds) > 0)
    assert recorded.cores.shape == (samples, CORES) and recorded.gpus.shape == (samples, 2)
    assert np.all((recorded.cores >= 0) & (recorded.cores <= 100))
    assert np.all(recorded.gpus == [97, 3])
    nvidia_smi(of_two.format("[N/A]\\n[N/A]\\n"))
    assert np.all(np.isnan(record(samples=2).gpus))
