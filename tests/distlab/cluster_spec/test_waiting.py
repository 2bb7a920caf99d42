"""A worker that waits for others, or trains, can be ended."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from distlab import cluster_spec
from distlab.launch.job import free_addresses, is_open

SECONDS_TO_IMPORT, SECONDS_TO_END = 600, 60
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
def test_ctrl_c_ends_a_worker_that_waits_for_the_others(root: Path, tmp_path: Path) -> None:
    addresses = free_addresses(2)
    command = [sys.executable, str(root / "notebooks/programs/07_multi_worker/train.py")]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, cwd=tmp_path, env=environment(addresses), stdout=quiet, stderr=quiet) as worker:
        try:
            deadline = time.monotonic() + SECONDS_TO_IMPORT
            while not is_open(addresses[0]):
                assert worker.poll() is None and time.monotonic() < deadline
                time.sleep(0.2)
            worker.send_signal(signal.SIGINT)
            assert worker.wait(SECONDS_TO_END) == -signal.SIGINT
        finally:
            worker.kill()


@pytest.mark.slow
def test_a_worker_that_trains_obeys_the_usual_signal() -> None:
    """Without the block TensorFlow would keep SIGTERM to itself."""
    command = [sys.executable, "-c", TRAINS]
    with subprocess.Popen(command, env=environment(free_addresses(1)), stdout=subprocess.PIPE, text=True) as worker:
        try:
            assert worker.stdout and "trains" in worker.stdout.readline()
            worker.terminate()
            assert worker.wait(SECONDS_TO_END) == -signal.SIGTERM
        finally:
            worker.kill()
