"""Times, throughput, speed-up, efficiency, and the recording of how busy the devices were."""

import math
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import psutil
import pytest

from distlab import metrics
from distlab.metrics import Stopwatch, Utilisation

CORES = len(psutil.cpu_percent(percpu=True))


@pytest.fixture
def two_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file with what `nvidia-smi` answers to the question of the utilisation of two GPUs."""
    answer = tmp_path / "utilisation.txt"
    answer.write_text("97\n3\n")
    program = tmp_path / "nvidia-smi"
    program.write_text(
        '#!/bin/sh\ncase "$1" in\n'
        '--query-gpu=name) printf "Model A\\nModel A\\n" ;;\n'
        f'--query-gpu=utilization.gpu) cat "{answer}" ;;\n'
        "*) exit 2 ;;\nesac\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return answer


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """No `nvidia-smi` is found."""
    monkeypatch.setattr(metrics, "gpu_names", list)


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


def test_a_stopwatch_knows_nothing_before_it_has_stopped() -> None:
    assert math.isnan(Stopwatch().elapsed)
    with Stopwatch() as stopwatch:
        assert math.isnan(stopwatch.elapsed)
        assert math.isnan(stopwatch.cpu)


@pytest.mark.slow
def test_sleeping_takes_time_but_no_processor_time() -> None:
    with Stopwatch() as stopwatch:
        time.sleep(0.3)
    assert stopwatch.elapsed >= 0.3
    assert stopwatch.cpu < stopwatch.elapsed / 2


def test_working_takes_processor_time_within_the_elapsed_time() -> None:
    with Stopwatch() as stopwatch:
        use_processor(0.2)
    assert stopwatch.cpu >= 0.2
    assert stopwatch.elapsed >= 0.2


@pytest.mark.slow
def test_processor_time_counts_every_thread() -> None:
    threads = [threading.Thread(target=use_processor, args=(0.1,)) for _ in range(3)]
    with Stopwatch() as stopwatch:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert stopwatch.cpu >= 0.3


def test_a_stopwatch_stops_when_its_block_fails_and_can_be_used_again() -> None:
    stopwatch = Stopwatch()
    with pytest.raises(ValueError, match="of the block"), stopwatch:
        raise ValueError("of the block")
    first = stopwatch.elapsed
    assert first >= 0
    with stopwatch:
        time.sleep(first + 0.05)
    assert stopwatch.elapsed > first


def test_throughput_counts_images_per_second() -> None:
    assert metrics.throughput(60_000, 4) == 15_000


def test_halving_the_time_on_four_devices_is_half_efficient() -> None:
    assert metrics.speedup(8, 4) == 2
    assert metrics.efficiency(8, 4, devices=4) == 0.5


def test_the_efficiency_of_the_serial_run_is_one() -> None:
    assert metrics.efficiency(3, 3, devices=1) == 1


def test_a_parallel_run_may_be_slower() -> None:
    assert metrics.speedup(1, 2) == 0.5
    assert metrics.efficiency(1, 2, devices=2) == 0.25


def test_the_median_leaves_warm_ups_and_outliers_out(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = 0.0
    durations = iter([100.0, 100.0, 3.0, 50.0, 1.0, 2.0, 4.0])

    def work() -> None:
        nonlocal clock
        clock += next(durations)

    monkeypatch.setattr(metrics.time, "perf_counter", lambda: clock)
    assert metrics.median_seconds(work, repeats=5, warm_ups=2) == 3
    assert next(durations, None) is None


def test_work_that_was_called_already_is_refused() -> None:
    with pytest.raises(TypeError, match="NoneType was given: write it without parentheses"):
        metrics.median_seconds(None)  # type: ignore[arg-type]


def test_each_sample_has_a_time_and_a_figure_for_each_core(no_gpu: None) -> None:
    recorded = record(samples=4)
    samples = len(recorded.seconds)
    assert samples >= 4
    assert recorded.seconds.shape == (samples,)
    assert recorded.cores.shape == (samples, CORES)
    assert recorded.gpus.shape == (samples, 0)
    assert np.all(np.diff(recorded.seconds) > 0)
    assert recorded.seconds[0] > 0
    assert np.all((recorded.cores >= 0) & (recorded.cores <= 100))


def test_each_sample_has_a_figure_for_each_gpu(two_gpus: Path) -> None:
    recorded = record(samples=2)
    samples = len(recorded.seconds)
    assert recorded.cores.shape == (samples, CORES)
    assert recorded.gpus.shape == (samples, 2)
    assert np.all(recorded.gpus == [97, 3])


@pytest.mark.parametrize("answer", ["[N/A]\n[N/A]\n", "", "12\n"], ids=["not supported", "silent", "a GPU missing"])
def test_a_gpu_that_does_not_report_is_recorded_as_not_a_number(two_gpus: Path, answer: str) -> None:
    two_gpus.write_text(answer)
    recorded = record(samples=2)
    assert recorded.gpus.shape == (len(recorded.seconds), 2)
    assert np.all(np.isnan(recorded.gpus))


def test_a_block_shorter_than_the_interval_has_no_samples_but_the_same_columns(two_gpus: Path) -> None:
    with Utilisation(interval=3600) as recorded:
        pass
    assert recorded.seconds.shape == (0,)
    assert recorded.cores.shape == (0, CORES)
    assert recorded.gpus.shape == (0, 2)


def test_recording_ends_with_the_block_even_if_that_fails(no_gpu: None) -> None:
    recorded = Utilisation(interval=0.01)
    with pytest.raises(ValueError, match="of the block"), recorded:
        raise ValueError("of the block")
    assert not recorded._thread.is_alive()
    assert recorded.cores.shape == (len(recorded.seconds), CORES)


@pytest.mark.slow
def test_work_shows_in_the_recording(no_gpu: None) -> None:
    with Utilisation(interval=0.05) as recorded:
        use_processor(0.3)
    assert recorded.cores.max() > 0


@pytest.mark.slow
def test_the_first_sample_is_of_the_block_like_every_other(no_gpu: None) -> None:
    with Utilisation(interval=0.3) as recorded:
        deadline = time.monotonic() + 60
        while not recorded._samples and time.monotonic() < deadline:
            use_processor(0.02)
    assert recorded.cores[0].max() > 0


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: metrics.throughput(100, 0), "seconds is 0; give a number above 0"),
        (lambda: metrics.throughput(100, metrics.Stopwatch()), r"seconds is Stopwatch\(elapsed=nan.*give a number"),
        (lambda: metrics.speedup("4", 2), "serial_seconds is '4'; give a number"),
        (lambda: metrics.efficiency(4, 2, 0), "devices is 0"),
        (lambda: metrics.median_seconds(len, repeats=10 / 2), r"repeats is 5\.0; give a whole number"),
        (lambda: metrics.median_seconds(len, repeats=0), "repeats is 0"),
        (lambda: metrics.Utilisation(interval=0), "interval is 0"),
    ],
)
def test_what_cannot_be_measured_is_one_sentence(call: Callable[[], object], sentence: str) -> None:
    with pytest.raises((TypeError, ValueError), match=sentence):
        call()


def test_a_coroutine_cannot_be_timed() -> None:
    async def program() -> None: ...

    with pytest.raises(TypeError, match="a coroutine, which has done nothing"):
        metrics.median_seconds(program)
