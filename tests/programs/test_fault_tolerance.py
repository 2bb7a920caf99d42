"""The programs of notebook 13: what a fault costs, and that the weights are those of a run without it."""

import argparse
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf

from distlab import checks, data, launch, models, programs
from distlab.runtime import environment
from tests.prepared_runs import PreparedRuns

environment.apply()  # puts this environment's mpirun on the path

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_job")]

EPOCHS, STEPS_PER_EPOCH = 2, 12
TOTAL = EPOCHS * STEPS_PER_EPOCH
PATIENT = {"echo": False, "seconds": 900, "start_seconds": 600}


@pytest.fixture(scope="module")
def chapter_folder(root: Path) -> Path:
    return root / "notebooks/programs/13_fault_tolerance"


def arrays(weights: list) -> list[np.ndarray]:
    return [np.array(weight) for weight in weights]


@pytest.fixture(scope="module")
def train(chapter_folder: Path) -> Iterator[ModuleType]:
    with mock.patch.object(sys, "path", [str(chapter_folder), *sys.path]):
        yield programs.module(chapter_folder / "train.py")


@pytest.fixture(scope="module")
def one_process(train: ModuleType) -> list[np.ndarray]:
    """The weights of a plain loop in this process over the same batches."""
    tf.keras.utils.set_random_seed(train.SEED)
    model = models.mlp(dropout=0.0)
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(tf.keras.optimizers.SGD(0.1, momentum=0.9), loss)
    start = model.get_weights()
    options = argparse.Namespace(dataset="digits", epochs=EPOCHS, steps_per_epoch=STEPS_PER_EPOCH)
    for images, labels in train.batches(options, 0):
        model.train_on_batch(images, labels)
    assert checks.largest_difference(start, model.get_weights()) > 0.01
    return model.get_weights()


def test_an_epoch_has_every_image_once_and_the_batches_are_the_same_wherever_one_begins(train: ModuleType) -> None:
    options = argparse.Namespace(dataset="digits", epochs=EPOCHS, steps_per_epoch=STEPS_PER_EPOCH)
    batches = [images.numpy() for images, _ in train.batches(options, 0)]
    for first in (1, 12, 24):
        rest = [images.numpy() for images, _ in train.batches(options, first)]
        assert np.array_equal(batches[first:], rest)
    images = np.concatenate(batches)
    epochs = images.reshape(EPOCHS, STEPS_PER_EPOCH * train.BATCH, -1)
    first, second = (sorted(map(bytes, epoch)) for epoch in epochs)
    assert first == second == sorted(map(bytes, data.load("digits").train.images[: len(first)]))
    assert not np.array_equal(*epochs)


def test_the_smallest_program_resumes_exactly_without_the_course(
    chapter_folder: Path, runs: PreparedRuns, tmp_path: Path
) -> None:
    text = (chapter_folder / "minimal.py").read_text()
    assert "distlab" not in text
    assert sum(map(bool, text.splitlines())) <= 40
    minimal = programs.module(chapter_folder / "minimal.py")
    undisturbed = minimal.train(tmp_path / "undisturbed")
    minimal.train(tmp_path / "stopped", steps=38)
    assert minimal.train(tmp_path / "stopped")[0].tolist() == undisturbed[0].tolist()
    finished = runs.run(chapter_folder / "minimal.py", tmp_path / "alone")
    assert (finished.status, "begins after step 0\n" in finished.output) == (0, True)


@pytest.mark.skipif(launch.horovod_problem() is not None, reason=str(launch.horovod_problem()))
def test_the_elastic_job_goes_on_from_the_commit_and_grows_again_to_the_weights_without_a_fault(
    chapter_folder: Path, tmp_path: Path, one_process: list[np.ndarray]
) -> None:
    hosts, discover = tmp_path / "hosts.txt", tmp_path / "discover.sh"
    hosts.write_text("localhost:1\n127.0.0.1:1\n")
    discover.write_text(f"#!/bin/sh\ncat {hosts}\n")
    discover.chmod(0o755)
    options = ["--gloo", "--gloo-timeout-seconds", "200", "--min-np", "1", "--max-np", "2"]
    options += ["--host-discovery-script", str(discover)]
    arguments = ["--images", 64 * TOTAL, "--images-per-epoch", 64 * STEPS_PER_EPOCH, "--hosts", hosts]
    arguments += ["--kill-at-step", 13, "--add-at-step", 17]
    program = chapter_folder / "train_elastic.py"
    elastic = launch.horovodrun(program, *arguments, options=options, result=True, **PATIENT).result
    assert [start[:2] for start in elastic["starts"]] == [[0, 2], [10, 1], [17, 2]]
    two_ranks, one_rank = range(1, 14), range(11, 18)
    expected = [*([step, 2] for step in two_ranks), *([step, 1] for step in one_rank)]
    executed = [step[:2] for step in elastic["executed"]]
    assert executed == [*expected, *([step, 2] for step in range(18, TOTAL + 1))]
    checks.assert_equal_weights(arrays(elastic["weights"]), one_process)


@pytest.mark.skipif(shutil.which("mpirun") is None, reason="there is no mpirun")
def test_the_straggler_is_the_rank_that_waits_least(chapter_folder: Path) -> None:
    arguments = ["--steps", 7, "--slow-rank", 2, "--times-slower", 5]
    trainings = launch.mpirun(chapter_folder / "find_straggler.py", *arguments, ranks=3, result=True, **PATIENT).result
    assert np.argmin(trainings["slow"]["waiting"]) == 2
    assert np.argmax(trainings["slow"]["computing"]) == 2
    assert [sum(training["shares"]) for training in trainings.values()] == [64, 64, 64]
    assert trainings["even"]["shares"] == trainings["slow"]["shares"] == [22, 21, 21]
    assert np.argmin(trainings["shared by speed"]["shares"]) == 2
    assert all(training["difference"] < checks.TOLERANCE for training in trainings.values())
