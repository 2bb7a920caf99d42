"""Workers with different options end before they train; a worker that waits for others, or trains, can be ended."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from distlab import cluster_spec, launch
from distlab.launch.job import free_addresses
from distlab.launch.ports import is_open

# isort: split

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


@pytest.mark.long
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
            time.sleep(1)  # it waits
            worker.send_signal(signal.SIGINT)
            assert worker.wait(SECONDS_TO_END) == -signal.SIGINT
        finally:
            worker.kill()


@pytest.mark.long
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


PROGRAM = """
import sys
from distlab import cluster_spec
import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
index = strategy.cluster_resolver.task_id
epochs, rate = (2 + index, 0.1 * (1 + index)) if sys.argv[1] == "different" else (2, 0.1)
cluster_spec.check_same_options(strategy, seed=7, epochs=epochs, dataset="digits", learning_rate=rate)
print("trains")
"""
STARTED = {"worker 0": "--epochs 2 --learning-rate 0.1", "worker 1": "--epochs 3 --learning-rate 0.2"}


@pytest.fixture
def program(tmp_path: Path) -> Path:
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    return file


def test_workers_with_different_options_end_in_a_sentence_that_names_them(program: Path) -> None:
    with pytest.raises(launch.WorkerFailed) as failure:
        launch.tensorflow(program, "different", echo=False)
    said = failure.value.run.output
    for worker, options in STARTED.items():
        sentence = f"The workers were started with different options, this one with {options}: start all with the same."
        assert sentence in said[worker]
        assert "trains" not in said[worker] and "Traceback" not in said[worker]


def test_workers_with_the_same_options_go_on_and_nothing_is_printed(program: Path) -> None:
    run = launch.tensorflow(program, "same", echo=False)
    assert [run.output[f"worker {index}"] for index in (0, 1)] == ["trains", "trains"]
