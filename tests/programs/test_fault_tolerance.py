"""The programs of notebook 13: what a fault costs, and that the weights are those of a run without it.

In this process `train.py` runs without a strategy, so that a fault costs a second.
"""

import argparse
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from unittest import mock

import numpy as np
import pytest

from distlab import checks, data, launch, models, programs
from tests.prepared_runs import PreparedRuns

# isort: split
import tensorflow as tf

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_job")]

CHAPTER = programs.FOLDER / "13_fault_tolerance"

EPOCHS, STEPS_PER_EPOCH, TOTAL = 2, 12, 24
START_AGAIN = 85
PATIENT = {"echo": False, "seconds": 900, "start_seconds": 600}


@pytest.fixture(scope="module")
def train() -> Iterator[ModuleType]:
    with mock.patch.object(sys, "path", [str(CHAPTER), *sys.path]), mock.patch("signal.signal"):
        yield programs.module(CHAPTER / "train.py")


def run(train: ModuleType, backup: Path) -> dict:
    """Train to the end without a strategy; the result."""
    usual = {"dataset": "digits", "epochs": EPOCHS}
    faults = {"pause": 0.0, "kill_worker": None, "kill_at_step": None, "signal": "KILL", "steps_done": None}
    options = argparse.Namespace(backup=backup, **usual, **faults)
    is_done, result = train.train(options, tf.distribute.get_strategy(), 0)
    assert is_done
    return result


def weights_of(result: dict) -> list[np.ndarray]:
    return [np.array(weights) for weights in result["weights"]]


@pytest.fixture(scope="module")
def undisturbed(train: ModuleType) -> list[np.ndarray]:
    """The weights of a plain loop in this process over the same batches."""
    tf.keras.utils.set_random_seed(train.SEED)
    model = models.mlp(dropout=0.0)
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(tf.keras.optimizers.SGD(0.1, momentum=0.9), loss)
    start = model.get_weights()
    options = argparse.Namespace(dataset="digits", epochs=EPOCHS)
    for images, labels in train.batches(options, 0):
        model.train_on_batch(images, labels)
    assert checks.largest_difference(start, model.get_weights()) > 0.01
    return model.get_weights()


@pytest.fixture(scope="module")
def stopped(runs: PreparedRuns, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that was killed after step 18: checkpoints 10 and 15."""
    folder = tmp_path_factory.mktemp("stopped")
    fault = ["--kill-worker", "0", "--kill-at-step", "18"]
    assert runs.run(CHAPTER / "train.py", "--backup", folder, *fault).status == -9
    assert saved_steps(folder) == [10, 15]
    return folder


@pytest.fixture
def backup(stopped: Path, tmp_path: Path) -> Path:
    """A copy to damage."""
    return Path(shutil.copytree(stopped, tmp_path / "backup"))


def saved_steps(folder: Path) -> list[int]:
    return sorted(int(file.stem.rpartition("-")[2]) for file in folder.glob("ckpt-[0-9]*.index"))


def cut(folder: Path, *steps: int) -> None:
    for step in steps:
        file = folder / f"ckpt-{step}.data-00000-of-00001"
        file.write_bytes(file.read_bytes()[:400_000])


def of_another_model(folder: Path, train: ModuleType) -> None:
    model = models.cnn()
    model.compile(tf.keras.optimizers.SGD(0.1))
    train.whole_checkpoints.seal(tf.train.Checkpoint(model=model).write(str(folder / "ckpt-20")))


FROM_10, FROM_15 = "resuming from checkpoint 10.", "resuming from checkpoint 15."
FAULTS: dict[str, tuple[Callable[[Path, ModuleType], object], int, str]] = {
    "none": (lambda folder, train: None, 15, f"Checkpoint 15 is whole: {FROM_15}"),
    "newest truncated": (lambda folder, train: cut(folder, 15), 10, f"(its data file is truncated): {FROM_10}"),
    "both truncated": (lambda folder, train: cut(folder, 10, 15), 0, "starting from the beginning."),
    "newest of another model": (of_another_model, 15, f"(it is a checkpoint of another model): {FROM_15}"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_damaged_newest_checkpoint_costs_one_interval_and_is_named(
    fault: str, backup: Path, train: ModuleType, undisturbed: list, capsys: pytest.CaptureFixture[str]
) -> None:
    damage, first_step, sentence = FAULTS[fault]
    damage(backup, train)
    result = run(train, backup)
    assert sentence in capsys.readouterr().out
    assert result["first_step"] == first_step
    checks.assert_equal_weights(weights_of(result), undisturbed)
    assert [step for step in saved_steps(backup) if step > 10] == [15, 20]  # whole ones, two of them
    assert all(train.whole_checkpoints.problem(str(backup / f"ckpt-{step}")) is None for step in (15, 20))


# Of the third checkpoint the files are whole, and the seal is missing.
KILLED_IN_A_SAVE = """
import os, sys
sys.path.insert(0, sys.argv.pop())
import train, whole_checkpoints
saves = []
def kill_in_the_third(function, arguments, options):
    saves.append(1)
    if len(saves) == 3:
        os.kill(os.getpid(), 9)
    return function(*arguments, **options)
original = whole_checkpoints.seal
whole_checkpoints.seal = lambda *arguments, **options: kill_in_the_third(original, arguments, options)
train.main()
"""


def test_killed_in_the_middle_of_a_save(
    train: ModuleType, tmp_path: Path, undisturbed: list, capsys: pytest.CaptureFixture[str]
) -> None:
    program, backup = tmp_path / "killed.py", tmp_path / "backup"
    program.write_text(KILLED_IN_A_SAVE)
    command = [sys.executable, str(program), "--backup", str(backup), str(CHAPTER)]
    killed = subprocess.run(command, check=False)
    assert killed.returncode == -9
    result = run(train, backup)
    assert FROM_10 in capsys.readouterr().out
    assert result["first_step"] == 10
    checks.assert_equal_weights(weights_of(result), undisturbed)


def test_after_a_notice_to_one_worker_both_save_at_one_step_and_nothing_is_lost(
    train: ModuleType, tmp_path: Path, undisturbed: list
) -> None:
    arguments = ["--backup", tmp_path / "backup", "--steps-done", tmp_path]
    notice = ["--kill-worker", 1, "--kill-at-step", 8, "--signal", "USR1"]
    with pytest.raises(launch.WorkerFailed) as stopped:
        launch.tensorflow(CHAPTER / "train.py", *arguments, *notice, **PATIENT)
    assert stopped.value.exit_code == START_AGAIN
    assert train.whole_checkpoints.problem(str(tmp_path / "backup" / "ckpt-9")) is None
    resumed = launch.tensorflow(CHAPTER / "train.py", *arguments, result=True, **PATIENT)
    assert resumed.result["first_step"] == 9
    for worker in range(2):
        steps = [int(line) for line in (tmp_path / f"worker-{worker}.txt").read_text().split()]
        assert steps == [*range(1, TOTAL + 1)]
    checks.assert_equal_weights(weights_of(resumed.result), undisturbed)


def test_an_epoch_has_every_image_once_and_the_batches_are_the_same_wherever_one_begins(train: ModuleType) -> None:
    options = argparse.Namespace(dataset="digits", epochs=EPOCHS)
    batches = [images.numpy() for images, _ in train.batches(options, 0)]
    for first in (1, 12, 24):
        rest = [images.numpy() for images, _ in train.batches(options, first)]
        assert np.array_equal(batches[first:], rest)
    images = np.concatenate(batches)
    epochs = images.reshape(EPOCHS, STEPS_PER_EPOCH * train.BATCH, -1)
    first, second = (sorted(map(bytes, epoch)) for epoch in epochs)
    assert first == second == sorted(map(bytes, data.load("digits").train.images[: len(first)]))
    assert not np.array_equal(*epochs)
