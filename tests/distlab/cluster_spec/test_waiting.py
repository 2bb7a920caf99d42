"""A worker that waits for others that are not started yet can be ended; so can one that trains."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from distlab import cluster_spec
from distlab.launch.job import free_addresses, is_open

SECONDS_TO_IMPORT, SECONDS_TO_END = 600, 60
# Each of them starts as worker 0 of two, of which the other never comes. `pytest -m fault` starts all of them.
PROGRAMS = {
    "07_multi_worker/train.py": [],
    "07_multi_worker/uneven_data.py": [],
    "07_multi_worker/save_wrongly.py": ["--folder", "saved"],
    "08_other_strategies/synchronous.py": [],
    "08_other_strategies/keras_3.py": [],
    "13_fault_tolerance/train.py": ["--backup", "saved"],
    "15_clusters/train_multi_worker.py": [],
}
TRAINS = """
import time
from distlab import cluster_spec
import tensorflow as tf
with cluster_spec.interruptible():
    tf.distribute.MultiWorkerMirroredStrategy()
print("trains", flush=True)
time.sleep(600)
"""


def environment(addresses: list[str]) -> dict[str, str]:
    return os.environ | {"TF_CONFIG": cluster_spec.tf_config({"worker": addresses}, "worker", 0)}


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS if "DISTLAB_FAULTS" in os.environ else list(PROGRAMS)[:2])
def test_ctrl_c_ends_a_worker_that_waits_for_the_others(name: str, root: Path, tmp_path: Path) -> None:
    addresses = free_addresses(2)
    command = [sys.executable, str(root / "notebooks/programs" / name), *PROGRAMS[name]]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, cwd=tmp_path, env=environment(addresses), stdout=quiet, stderr=quiet) as worker:
        try:
            deadline = time.monotonic() + SECONDS_TO_IMPORT
            while not is_open(addresses[0]):
                assert worker.poll() is None and time.monotonic() < deadline
                time.sleep(0.2)
            time.sleep(1)  # it waits
            worker.send_signal(signal.SIGINT)
            assert worker.wait(SECONDS_TO_END) == -signal.SIGINT
        finally:
            worker.kill()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_worker_that_trains_obeys_the_usual_signals(number: signal.Signals) -> None:
    """Without the block TensorFlow would keep SIGTERM to itself."""
    command = [sys.executable, "-c", TRAINS]
    with subprocess.Popen(command, env=environment(free_addresses(1)), stdout=subprocess.PIPE, text=True) as worker:
        try:
            assert worker.stdout and "trains" in worker.stdout.readline()
            worker.send_signal(number)
            assert worker.wait(SECONDS_TO_END) == -number
        finally:
            worker.kill()


def test_an_interrupt_that_is_ignored_or_handled_stays_so() -> None:
    usual = signal.getsignal(signal.SIGINT)
    try:
        for handler in (signal.SIG_IGN, lambda number, frame: None):
            signal.signal(signal.SIGINT, handler)
            with cluster_spec.interruptible():
                assert signal.getsignal(signal.SIGINT) is handler
            assert signal.getsignal(signal.SIGINT) is handler
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with cluster_spec.interruptible():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, usual)


def test_in_another_thread_no_signal_is_touched() -> None:
    before = signal.getsignal(signal.SIGINT)

    def wait() -> Callable[..., object] | int | None:
        with cluster_spec.interruptible():
            return signal.getsignal(signal.SIGINT)

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(wait).result(60) == before
