"""`whole_checkpoints.py` of notebook 13: no damaged checkpoint passes for a whole one; the one before it is found."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import tensorflow as tf

from distlab import programs
from tests.prepared_runs import PreparedRuns

pytestmark = pytest.mark.slow

NUMBERS = (9, 10, 11)
DATA, INDEX = "ckpt-11.data-00000-of-00001", "ckpt-11.index"


@pytest.fixture(scope="module")
def program(root: Path) -> ModuleType:
    return programs.module(root / "notebooks/programs/13_fault_tolerance/whole_checkpoints.py")


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory, program: ModuleType) -> Path:
    """Three sealed checkpoints of the same variables with other values; the values are the number."""
    folder = tmp_path_factory.mktemp("pristine")
    value, label = tf.Variable(tf.zeros((40, 40))), tf.Variable("none")
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(value=value, label=label), folder, max_to_keep=None)
    for number in NUMBERS:
        value.assign(tf.fill(value.shape, float(number)))
        label.assign(f"number {number:3}")
        program.seal(manager.save(number))
    return folder


@pytest.fixture
def folder(pristine: Path, tmp_path: Path) -> Path:
    """A copy to damage."""
    shutil.copytree(pristine, tmp_path / "saves")
    return tmp_path / "saves"


def cut(file: Path, size: int) -> None:
    file.write_bytes(file.read_bytes()[:size])


def overwrite(file: Path, position: int, new: bytes) -> None:
    old = file.read_bytes()
    file.write_bytes(old[:position] + new + old[position + len(new) :])


def put_older(folder: Path, *names: str) -> None:
    for name in names:
        shutil.copy(folder / name.replace("-11.", "-10."), folder / name)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "data empty": lambda folder: cut(folder / DATA, 0),
    "data without its last byte": lambda folder: cut(folder / DATA, (folder / DATA).stat().st_size - 1),
    "one value of zeros": lambda folder: overwrite(folder / DATA, 0, bytes(64)),
    "data of the one before": lambda folder: put_older(folder, DATA),
    "index missing": lambda folder: (folder / INDEX).unlink(),
    "seal half written": lambda folder: cut(folder / "ckpt-11.seal", 20),
    "index of the one before": lambda folder: put_older(folder, INDEX),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_checkpoint_is_found_and_the_one_before_is_used(
    name: str, folder: Path, program: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    DAMAGES[name](folder)
    prefix = str(folder / "ckpt-11")
    assert program.broken_seal(prefix)
    assert program.newest(folder) == str(folder / "ckpt-10")
    assert f"Checkpoint 11 cannot be used ({program.problem(prefix)}): resuming from" in capsys.readouterr().out


def test_no_length_and_no_flipped_bit_passes(folder: Path, program: ModuleType) -> None:
    for file in (folder / DATA, folder / INDEX):
        good, prefix = file.read_bytes(), str(folder / "ckpt-11")
        for size in np.linspace(0, len(good) - 1, 20).astype(int):
            cut(file, size)
            assert program.unreadable(prefix), (file.name, size)
            file.write_bytes(good)
        for position in np.linspace(0, len(good) - 1, 60).astype(int):
            overwrite(file, position, bytes([good[position] ^ 0x10]))
            if not program.unreadable(prefix):  # a byte of the index that nobody reads
                assert file.name == INDEX
                reader = tf.train.load_checkpoint(prefix)
                assert np.all(reader.get_tensor("value/.ATTRIBUTES/VARIABLE_VALUE") == 11)
                assert reader.get_tensor("label/.ATTRIBUTES/VARIABLE_VALUE") == b"number  11"
            file.write_bytes(good)
        assert not program.unreadable(prefix)


def test_the_program_prints_a_line_for_each_and_its_status_says_whether_one_is_whole(
    runs: PreparedRuns, folder: Path, program: ModuleType
) -> None:
    def verdict() -> tuple[int, str]:
        finished = runs.run(Path(str(program.__file__)), folder)
        return finished.status, finished.output

    cut(folder / DATA, 100)
    status, printed = verdict()
    assert status == 0
    assert re.findall(r"ckpt-(\d+): (\w+)", printed) == [("9", "whole"), ("10", "whole"), ("11", "damaged")]
    assert printed.endswith(f"use {folder / 'ckpt-10'}\n")
    for number in NUMBERS:
        (folder / f"ckpt-{number}.index").unlink()
    reasons = ["index file is missing", "index file is missing", "data file is truncated"]
    lines = [f"ckpt-{number}: damaged, its {reason}\n" for number, reason in zip(NUMBERS, reasons, strict=True)]
    assert verdict() == (1, "".join([*lines, "no whole checkpoint\n"]))


def test_every_damage_of_the_chapter_is_found(root: Path, pristine: Path, program: ModuleType, tmp_path: Path) -> None:
    damage = programs.module(root / "notebooks/programs/13_fault_tolerance/damage.py")
    for how in damage.DAMAGES:
        copy = shutil.copytree(pristine, tmp_path / how)
        damage.damage(copy / "ckpt-11", how)
        assert program.newest(copy) == str(copy / "ckpt-10"), how
