"""Workers with different options end before they train, each in one sentence; workers with the same ones go on."""

from pathlib import Path

import pytest

from distlab import cluster_spec, launch

# isort: split
import tensorflow as tf

pytestmark = [pytest.mark.slow]

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


def test_replicas_of_one_process_agree() -> None:
    cluster_spec.check_same_options(tf.distribute.MirroredStrategy(["CPU:0"]), epochs=2)
    cluster_spec.check_same_options(tf.distribute.get_strategy(), epochs=2, dataset="digits")
