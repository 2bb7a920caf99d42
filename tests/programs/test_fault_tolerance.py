"""The programs of notebook 13: no damaged checkpoint passes for a whole one; what a fault costs; weights as without it.

In this process `train.py` runs without a strategy, so that a fault costs a second. Two workers, of which one is killed
or gets a notice, and what finds which damage, are compared in the notebook.
"""

import argparse
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from distlab import checks, data, models, programs
from tests.prepared_runs import PreparedRuns

# isort: split
import tensorflow as tf

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_job")]

CHAPTER = programs.FOLDER / "13_fault_tolerance"
with pytest.MonkeyPatch.context() as path:
    path.syspath_prepend(CHAPTER)  # they import one another
    damage, train, whole = (
        programs.module(CHAPTER / f"{name}.py") for name in ("damage", "train", "whole_checkpoints")
    )

EPOCHS, STEPS_PER_EPOCH = 2, 12


# Whole checkpoints

DATA, INDEX = "ckpt-11.data-00000-of-00001", "ckpt-11.index"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three sealed checkpoints of the same variables with other values; the values are the number."""
    value, label = tf.Variable(tf.zeros((40, 40))), tf.Variable("none")
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(value=value, label=label), tmp_path, max_to_keep=None)
    for number in (9, 10, 11):
        value.assign(tf.fill(value.shape, float(number)))
        label.assign(f"number {number:3}")
        whole.seal(manager.save(number))
    return tmp_path


def test_no_length_and_no_flipped_bit_passes(folder: Path) -> None:
    for file in (folder / DATA, folder / INDEX):
        good, prefix = file.read_bytes(), str(folder / "ckpt-11")
        for size in np.linspace(0, len(good) - 1, 20).astype(int):
            damage.cut(file, size)
            assert whole.unreadable(prefix), (file.name, size)
            file.write_bytes(good)
        for position in np.linspace(0, len(good) - 1, 60).astype(int):
            damage.overwrite(file, position, bytes([good[position] ^ 0x10]))
            if not whole.unreadable(prefix):  # a byte of the index that nobody reads
                assert file.name == INDEX
                reader = tf.train.load_checkpoint(prefix)
                assert np.all(reader.get_tensor("value/.ATTRIBUTES/VARIABLE_VALUE") == 11)
                assert reader.get_tensor("label/.ATTRIBUTES/VARIABLE_VALUE") == b"number  11"
            file.write_bytes(good)
        assert not whole.unreadable(prefix)


def test_the_program_prints_a_line_for_each_and_its_status_says_whether_one_is_whole(
    runs: PreparedRuns, folder: Path
) -> None:
    damage.cut(folder / DATA, 100)
    some = runs.run(CHAPTER / "whole_checkpoints.py", folder)
    assert re.findall(r"ckpt-(\d+): (\w+)", some.output) == [("9", "whole"), ("10", "whole"), ("11", "damaged")]
    assert (some.status, some.output.splitlines()[-1]) == (0, f"use {folder / 'ckpt-10'}")
    for file in folder.glob("ckpt-*.index"):
        file.unlink()
    none = runs.run(CHAPTER / "whole_checkpoints.py", folder)
    assert (none.status, none.output.splitlines()[-1]) == (1, "no whole checkpoint")


# Training that is started again


@pytest.fixture(scope="module")
def undisturbed() -> list[np.ndarray]:
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
    assert runs.run(CHAPTER / "train.py", "--backup", folder, *fault).status in (-9, 128 + 9)
    assert saved_steps(folder) == [10, 15]
    return folder


def saved_steps(folder: Path) -> list[int]:
    return sorted(int(file.stem.rpartition("-")[2]) for file in folder.glob("ckpt-[0-9]*.index"))


def cut(folder: Path, *steps: int) -> None:
    for step in steps:
        damage.cut(folder / f"ckpt-{step}.data-00000-of-00001", 400_000)


FROM_10 = "resuming from checkpoint 10."
FAULTS: dict[str, tuple[Callable[[Path], object], int, str]] = {
    "none": (lambda folder: None, 15, "Checkpoint 15 is whole: resuming from checkpoint 15."),
    "newest truncated": (lambda folder: cut(folder, 15), 10, f"(its data file is truncated): {FROM_10}"),
    "killed in the save": (lambda folder: (folder / "ckpt-15.seal").unlink(), 10, FROM_10),
    "both truncated": (lambda folder: cut(folder, 10, 15), 0, "starting from the beginning."),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_damaged_newest_checkpoint_costs_one_interval_and_is_named(
    fault: str, stopped: Path, tmp_path: Path, undisturbed: list, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged, first_step, sentence = FAULTS[fault]
    backup = Path(shutil.copytree(stopped, tmp_path / "backup"))
    damaged(backup)
    no_fault = {"pause": 0.0, "kill_worker": None, "kill_at_step": None, "signal": "KILL", "steps_done": None}
    options = argparse.Namespace(backup=backup, dataset="digits", epochs=EPOCHS, **no_fault)
    is_done, result = train.train(options, tf.distribute.get_strategy(), 0)
    assert is_done and result["first_step"] == first_step
    assert sentence in capsys.readouterr().out
    checks.assert_equal_weights(list(map(np.array, result["weights"])), undisturbed)
    assert [step for step in saved_steps(backup) if step > 10] == [15, 20]  # whole ones, two of them
    for prefix in (str(backup / f"ckpt-{step}") for step in (15, 20)):
        assert (whole.broken_seal(prefix) or whole.unreadable(prefix)) is None


def test_an_epoch_has_every_image_once_and_the_batches_are_the_same_wherever_one_begins() -> None:
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
