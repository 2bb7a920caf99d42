"""The programs of notebook 11: what they count, time and record."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from distlab import frameworks, launch, programs
from distlab.profiling import horovod_timeline

# isort: split
import tensorflow as tf

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_job")]
needs_horovod = pytest.mark.skipif(launch.horovod_problem() is not None, reason=str(launch.horovod_problem()))

CHAPTER = programs.FOLDER / "11_scaling_and_profiling"
RANKS, BATCH, IMAGES, EPOCHS = 2, 256, 5000, 2
STEPS = IMAGES // RANKS // BATCH
PATIENT = {"echo": False, "result": True, "seconds": 900, "start_seconds": 600}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict, Path]:
    """The result of a training with Horovod's timeline and TensorFlow's trace, and the folder with what they wrote."""
    folder = tmp_path_factory.mktemp("recorded")
    variables = {"HOROVOD_TIMELINE": str(folder / "timeline.json"), "HOROVOD_CACHE_CAPACITY": "0"}
    arguments = ["--epochs", EPOCHS, "--trace", folder / "trace"]
    run = launch.mpirun(CHAPTER / "train.py", *arguments, ranks=RANKS, environment=variables, **PATIENT)
    return run.result, folder


@needs_horovod
def test_the_trace_has_the_operations_of_every_step(recorded: tuple[dict, Path]) -> None:
    kinds = {operation["kind"]: operation["calls"] for operation in recorded[0]["operations"]}
    assert any("Conv2DBackpropFilter" in kind and calls >= STEPS for kind, calls in kinds.items())


@needs_horovod
def test_the_timeline_has_every_tensor_of_the_gradient_in_every_step(recorded: tuple[dict, Path]) -> None:
    result, folder = recorded
    timeline = horovod_timeline.read(folder / "timeline.json")
    operations = [operation for operation in timeline.operations if operation.kind == "ALLREDUCE"]
    steps = STEPS * (EPOCHS + 1)  # with the traced epoch
    by_tensor = {one.tensor: one.nbytes for one in operations}
    assert sum(by_tensor.values()) == result["gradient_bytes"]
    assert Counter(one.tensor for one in operations) == dict.fromkeys(by_tensor, steps)


def test_the_program_for_gpus_runs_over_gloo_where_there_is_none() -> None:
    if reason := frameworks.problem("torch"):
        pytest.skip(reason)
    program = CHAPTER / "record_gpu.py"
    result = launch.torchrun(program, ranks=2, python=frameworks.python("torch"), **PATIENT).result
    assert result["ranks"] == 2 and result["largest_difference"] < 1e-5
    assert all(row["seconds"] > 0 for row in [*result["speeds"], *result["all_reduces"]])


def samples(count: int) -> tf.data.Dataset:
    return tf.data.Dataset.from_tensor_slices((np.zeros((count, 4), np.float32), np.zeros(count, np.int64)))


FED = {
    "a smaller last batch": (lambda: samples(21).batch(8), {}, [21, 21]),
    "a dropped tail": (lambda: samples(21).batch(8, drop_remainder=True), {}, [16, 16]),
    # Not steps × batch: its third batch, of 5 images, is the first of the second epoch.
    "batches that go on": (lambda: samples(21).batch(8).repeat(), {"steps_per_epoch": 2}, [16, 13]),
    "validation": (lambda: samples(21).batch(8), {"validation_data": samples(100).batch(50)}, [21, 21]),
    "several steps per call": (lambda: samples(64).repeat().batch(8), {"steps_per_epoch": 8}, [64, 64]),
}


@pytest.mark.parametrize("name", FED)
def test_the_metric_counts_the_images_that_the_steps_worked_on(name: str) -> None:
    feed, how, expected = FED[name]
    images = programs.module(CHAPTER / "measure_throughput.py").Images("images", tf.int64)
    model = tf.keras.Sequential([tf.keras.layers.Input((4,)), tf.keras.layers.Dense(3)])
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    steps = 4 if name == "several steps per call" else 1
    model.compile("sgd", loss, metrics=["accuracy", images], steps_per_execution=steps)
    assert model.fit(feed(), epochs=2, verbose=0, **how).history["images"] == expected
