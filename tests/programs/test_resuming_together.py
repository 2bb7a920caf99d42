"""`train.py` of notebook 13 as a job of two workers: one choice of the checkpoint for all, and one save for all."""

import json
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from unittest import mock

import numpy as np
import pytest

from distlab import checks, launch, programs

# isort: split
import tensorflow as tf

pytestmark = [pytest.mark.slow]

START_AGAIN = 85
PATIENT = {"echo": False, "seconds": 900, "start_seconds": 600}

IN_OWN_FOLDER = """
import json, os, sys
sys.path.insert(0, {chapter_folder!r})
os.chdir("worker-" + str(json.loads(os.environ["TF_CONFIG"])["task"]["index"]))
import train
train.main()
"""


@pytest.fixture(scope="module")
def chapter_folder(root: Path) -> Path:
    return root / "notebooks/programs/13_fault_tolerance"


@pytest.fixture(scope="module")
def train(chapter_folder: Path) -> Iterator[ModuleType]:
    with mock.patch.object(sys, "path", [str(chapter_folder), *sys.path]):
        yield programs.module(chapter_folder / "train.py")


def weights_of(result: dict) -> list[np.ndarray]:
    return [np.array(weights) for weights in result["weights"]]


@pytest.fixture(scope="module")
def undisturbed(chapter_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> list[np.ndarray]:
    backup = tmp_path_factory.mktemp("undisturbed") / "backup"
    return weights_of(launch.tensorflow(chapter_folder / "train.py", "--backup", backup, result=True, **PATIENT).result)


@pytest.mark.parametrize("name", ["USR1", "TERM"])
def test_after_a_notice_all_save_at_one_step_and_nothing_is_lost(
    name: str, chapter_folder: Path, train: ModuleType, tmp_path: Path, undisturbed: list
) -> None:
    arguments = ["--backup", tmp_path / "backup", "--steps-done", tmp_path]
    notice = ["--kill-worker", 1, "--kill-at-step", 8, "--signal", name]
    with pytest.raises(launch.WorkerFailed) as stopped:
        launch.tensorflow(chapter_folder / "train.py", *arguments, *notice, **PATIENT)
    assert stopped.value.exit_code == START_AGAIN
    assert train.whole_checkpoints.problem(str(tmp_path / "backup" / "ckpt-9")) is None
    resumed = launch.tensorflow(chapter_folder / "train.py", *arguments, result=True, **PATIENT)
    assert resumed.result["first_step"] == 9
    for worker in range(2):
        steps = [int(line) for line in (tmp_path / f"worker-{worker}.txt").read_text().split()]
        assert steps == [*range(1, 25)]
    checks.assert_equal_weights(weights_of(resumed.result), undisturbed)


@pytest.fixture
def own_folders(chapter_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program whose workers each have their own folder; the chief was killed after step 18."""
    for worker in range(2):
        (tmp_path / f"worker-{worker}").mkdir()
    monkeypatch.chdir(tmp_path)
    program = tmp_path / "in_own_folder.py"
    program.write_text(IN_OWN_FOLDER.format(chapter_folder=str(chapter_folder)))
    with pytest.raises(launch.WorkerFailed) as killed:
        launch.tensorflow(program, "--backup", "backup", "--kill-worker", 0, "--kill-at-step", 18, **PATIENT)
    assert killed.value.exit_code == -signal.SIGKILL
    return program


def test_the_chief_chooses_for_all_where_each_worker_has_its_own_folder(
    own_folders: Path, tmp_path: Path, undisturbed: list
) -> None:
    chief, other = (tmp_path / f"worker-{worker}" / "backup" for worker in range(2))
    assert not list(other.iterdir())
    shutil.copytree(chief, other, dirs_exist_ok=True)  # the other worker would choose checkpoint 15
    newest = chief / "ckpt-15.data-00000-of-00001"
    newest.write_bytes(newest.read_bytes()[:300_000])
    resumed = launch.tensorflow(own_folders, "--backup", "backup", "--result", tmp_path / "result.json", **PATIENT)
    sentence = "Checkpoint 15 cannot be used (its data file is truncated): resuming from checkpoint 10."
    assert sentence in resumed.output["worker 0"]
    for worker in range(2):
        assert "begins after step 10" in resumed.output[f"worker {worker}"]
    checks.assert_equal_weights(weights_of(json.loads((tmp_path / "result.json").read_text())), undisturbed)
    assert tf.train.latest_checkpoint(chief) == str(chief / "ckpt-20")
