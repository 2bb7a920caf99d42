"""`train.py` of notebook 13 resumes from the newest whole checkpoint, says which and why, and trains the same weights.

In this process it runs without a strategy, so that a fault costs a second; jobs of two workers are in
`test_resuming_together.py`.
"""

import argparse
import fcntl
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from unittest import mock

import numpy as np
import pytest

from distlab import checks, models, programs
from distlab.runtime import processes
from tests import small_disks
from tests.prepared_runs import PreparedRuns

# isort: split
import tensorflow as tf

pytestmark = [pytest.mark.slow]

TOTAL, SAVE_EVERY, STOPPED_AT = 24, 5, 18


@pytest.fixture(scope="module")
def chapter_folder(root: Path) -> Path:
    return root / "notebooks/programs/13_fault_tolerance"


@pytest.fixture(scope="module")
def train(chapter_folder: Path) -> Iterator[ModuleType]:
    with mock.patch.object(sys, "path", [str(chapter_folder), *sys.path]), mock.patch("signal.signal"):
        yield programs.module(chapter_folder / "train.py")


def options(backup: Path, **changed: object) -> argparse.Namespace:
    usual = {"dataset": "digits", "epochs": 2, "steps_per_epoch": 12, "save_every": SAVE_EVERY, "backup": backup}
    faults = {"kill_worker": None, "kill_at_step": None, "signal": "KILL", "steps_done": None}
    return argparse.Namespace(**{**usual, **faults, **changed})


def run(train: ModuleType, backup: Path, **changed: object) -> dict:
    """Train to the end without a strategy; the result."""
    backup.mkdir(exist_ok=True)
    is_done, result = train.train(options(backup, **changed), tf.distribute.get_strategy(), 0)
    assert is_done
    return result


@pytest.fixture(scope="module")
def undisturbed(train: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> list[np.ndarray]:
    result = run(train, tmp_path_factory.mktemp("undisturbed"), save_every=1000)
    return [np.array(weights) for weights in result["weights"]]


@pytest.fixture(scope="module")
def stopped(runs: PreparedRuns, chapter_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that was killed after step 18: checkpoints 10 and 15."""
    folder = tmp_path_factory.mktemp("stopped")
    fault = ["--kill-worker", "0", "--kill-at-step", STOPPED_AT]
    assert runs.run(chapter_folder / "train.py", "--backup", folder, *fault).status == -9
    assert saved_steps(folder) == [10, 15]
    return folder


@pytest.fixture
def backup(stopped: Path, tmp_path: Path) -> Path:
    """A copy to damage."""
    return Path(shutil.copytree(stopped, tmp_path / "backup"))


def saved_steps(folder: Path) -> list[int]:
    return sorted(int(file.stem.rpartition("-")[2]) for file in folder.glob("ckpt-[0-9]*.index"))


def data(folder: Path, step: int) -> Path:
    return folder / f"ckpt-{step}.data-00000-of-00001"


def cut(file: Path, size: int) -> None:
    file.write_bytes(file.read_bytes()[:size])


def garbage(folder: Path) -> None:
    for name in ("checkpoint", "notes.txt", "ckpt-99.seal", "ckpt-.index", "ckpt-98.data-00000-of-00001.tempstate7"):
        (folder / name).write_bytes(os.urandom(500))
    (folder / "ckpt-97_temp").mkdir()


def other_model(folder: Path, train: ModuleType) -> None:
    model = models.cnn()
    model.compile(tf.keras.optimizers.SGD(0.1))
    train.whole_checkpoints.seal(tf.train.Checkpoint(model=model).write(str(folder / "ckpt-20")))


def both_cut(folder: Path) -> None:
    cut(data(folder, 10), 100)
    cut(data(folder, 15), 200)


FROM_10, FROM_15 = "resuming from checkpoint 10.", "resuming from checkpoint 15."
FAULTS: dict[str, tuple[Callable[..., object], int, str]] = {
    "none": (lambda folder: None, 15, f"Checkpoint 15 is whole: {FROM_15}"),
    "newest truncated": (
        lambda folder: cut(data(folder, 15), 400_000),
        10,
        f"Checkpoint 15 cannot be used (its data file is truncated): {FROM_10}",
    ),
    "newest empty": (
        lambda folder: cut(data(folder, 15), 0),
        10,
        f"Checkpoint 15 cannot be used (its data file is empty): {FROM_10}",
    ),
    "newest index removed": (
        lambda folder: (folder / "ckpt-15.index").unlink(),
        10,
        f"Checkpoint 15 cannot be used (its index file is missing): {FROM_10}",
    ),
    "newest data removed": (
        lambda folder: data(folder, 15).unlink(),
        10,
        f"Checkpoint 15 cannot be used (its data file is missing): {FROM_10}",
    ),
    "newest has other bytes": (
        lambda folder: data(folder, 15).write_bytes(os.urandom(data(folder, 15).stat().st_size)),
        10,
        f"Checkpoint 15 cannot be used (the bytes of its data file have changed): {FROM_10}",
    ),
    "newest never sealed": (
        lambda folder: (folder / "ckpt-15.seal").unlink(),
        10,
        f"Checkpoint 15 cannot be used (it has no seal: the job ended before the save was complete): {FROM_10}",
    ),
    "newest seal is garbage": (
        lambda folder: (folder / "ckpt-15.seal").write_bytes(os.urandom(100)),
        10,
        f"Checkpoint 15 cannot be used (its seal cannot be read): {FROM_10}",
    ),
    "both damaged": (
        both_cut,
        0,
        "Checkpoint 15 cannot be used (its data file is truncated), "
        "Checkpoint 10 cannot be used (its data file is truncated): starting from the beginning.",
    ),
    "garbage in the folder": (garbage, 15, f"Checkpoint 15 is whole: {FROM_15}"),
    "all is gone": (
        lambda folder: [file.unlink() for file in folder.iterdir()],
        0,
        "starting from the beginning.",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_damaged_newest_checkpoint_costs_one_interval_and_is_named(
    fault: str, backup: Path, train: ModuleType, undisturbed: list, capsys: pytest.CaptureFixture[str]
) -> None:
    damage, first_step, sentence = FAULTS[fault]
    damage(backup)
    result = run(train, backup)
    assert sentence in capsys.readouterr().out
    assert result["first_step"] == first_step
    checks.assert_equal_weights([np.array(weights) for weights in result["weights"]], undisturbed)
    assert [step for step in saved_steps(backup) if step in (15, 20)] == [15, 20]  # whole ones, two of them
    assert all(train.whole_checkpoints.problem(str(backup / f"ckpt-{step}")) is None for step in (15, 20))


def test_two_checkpoints_are_kept_also_after_a_resume(backup: Path, train: ModuleType) -> None:
    run(train, backup)
    assert saved_steps(backup) == [15, 20]
    assert {file.name for file in backup.glob("*.seal")} == {"ckpt-15.seal", "ckpt-20.seal"}


def test_a_damaged_one_does_not_count_as_one_of_the_two(backup: Path, train: ModuleType) -> None:
    cut(data(backup, 15), 100)
    run(train, backup, save_every=7)  # saves at 14 and 21, so checkpoint 15 stays as it is
    assert saved_steps(backup) == [14, 15, 21]


def test_a_checkpoint_of_another_model_is_named_and_changes_nothing(
    backup: Path, train: ModuleType, undisturbed: list, capsys: pytest.CaptureFixture[str]
) -> None:
    other_model(backup, train)
    result = run(train, backup)
    assert f"Checkpoint 20 cannot be used (it is a checkpoint of another model): {FROM_15}" in capsys.readouterr().out
    checks.assert_equal_weights([np.array(weights) for weights in result["weights"]], undisturbed)


def test_a_finished_run_that_is_started_again_trains_no_step(backup: Path, train: ModuleType) -> None:
    first = run(train, backup, save_every=6)
    again = run(train, backup, save_every=6)
    assert again["first_step"] == TOTAL
    assert again["weights"] == first["weights"]


KILLED_IN_A_SAVE = """
import os, sys
sys.path.insert(0, {chapter_folder!r})
import tensorflow as tf, train, whole_checkpoints
from tensorflow.python.ops import gen_io_ops
saves = []
def kill_in_the_third(function, arguments, options):
    saves.append(1)
    if len(saves) >= {count}:
        os.kill(os.getpid(), 9)
    return function(*arguments, **options)
original = {place}
{place} = lambda *arguments, **options: kill_in_the_third(original, arguments, options)
train.main()
"""

MOMENTS = {
    # The layout is written once before the first step, so the third checkpoint is the fourth merge.
    "before TensorFlow renames the files": ("gen_io_ops.merge_v2_checkpoints", 4),
    "before the seal": ("whole_checkpoints.seal", 3),
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_killed_in_the_middle_of_a_save(
    moment: str,
    chapter_folder: Path,
    train: ModuleType,
    tmp_path: Path,
    undisturbed: list,
    capsys: pytest.CaptureFixture[str],
) -> None:
    place, count = MOMENTS[moment]
    program, backup = tmp_path / "killed.py", tmp_path / "backup"
    program.write_text(KILLED_IN_A_SAVE.format(chapter_folder=str(chapter_folder), place=place, count=count))
    killed = subprocess.run([sys.executable, str(program), "--backup", str(backup)], check=False)
    assert killed.returncode == -9
    result = run(train, backup)
    assert FROM_10 in capsys.readouterr().out
    assert result["first_step"] == 10
    checks.assert_equal_weights([np.array(weights) for weights in result["weights"]], undisturbed)


def no_folder(tmp_path: Path) -> tuple[Path, str]:
    (tmp_path / "file").write_text("")
    return tmp_path / "file" / "backup", "Not a directory"


def no_permission(tmp_path: Path) -> tuple[Path, str]:
    if os.geteuid() == 0:
        pytest.skip("root may write anywhere")
    tmp_path.chmod(0o500)
    return tmp_path / "backup", "Permission denied"


@pytest.mark.parametrize("make", [no_folder, no_permission])
def test_a_folder_that_cannot_be_written_to_is_one_sentence(
    make: Callable[[Path], tuple[Path, str]], train: ModuleType, tmp_path: Path
) -> None:
    folder, reason = make(tmp_path)
    with pytest.raises(SystemExit) as ended:
        train.backup_folder.check_writable(folder)
    assert ended.value.code == f"Cannot save in {folder} ({reason}): choose another folder with --backup."


def command(chapter_folder: Path, backup: Path) -> str:
    """For a shell."""
    return shlex.join([sys.executable, str(chapter_folder / "train.py"), "--backup", str(backup)])


@small_disks.needs_mounts
def test_a_full_disk_ends_in_a_sentence_and_the_checkpoint_before_stays_whole(
    chapter_folder: Path, tmp_path: Path
) -> None:
    """The disk has room for one checkpoint and most of another."""
    script = ["sh", "-c", f"{command(chapter_folder, tmp_path)}; echo status $?; ls {shlex.quote(str(tmp_path))}"]
    said = processes.run(small_disks.with_disk(tmp_path, "size=1200k", script), 600).output
    assert "Traceback" not in said
    end = said[said.index(f"Cannot save in {tmp_path}") :].splitlines()
    assert "No space left on device); checkpoint 5 is whole: make room" in end[0]
    assert end[1] == "status 1"
    files = ["checkpoint", "ckpt-5.data-00000-of-00001", "ckpt-5.index", "ckpt-5.seal", "dataset.txt"]
    assert end[2:] == files


@pytest.mark.skipif(not shutil.which("capsh") or os.geteuid() != 0, reason="only root can give its rights away")
def test_a_checkpoint_in_the_way_that_may_not_be_touched_is_named(chapter_folder: Path, backup: Path) -> None:
    for file in backup.glob("ckpt-15.*"):
        file.chmod(0)
    drop = "--drop=cap_dac_override,cap_dac_read_search"
    finished = processes.run(["capsh", drop, "--", "-c", command(chapter_folder, backup)], 600)
    assert finished.status == 1 and "Traceback" not in finished.output
    assert f"Checkpoint 15 cannot be used (it cannot be read: Permission denied): {FROM_10}" in finished.output
    assert "ckpt-15.index: Permission denied); checkpoint 10 is whole: remove that file" in finished.output


def test_checkpoints_of_another_program_are_refused_and_stay_listed(
    runs: PreparedRuns, chapter_folder: Path, tmp_path: Path, train: ModuleType, backup: Path
) -> None:
    state = tf.train.Checkpoint(value=tf.Variable(1.0))
    state.save(str(tmp_path / "checkpoint"))
    finished = runs.run(chapter_folder / "train.py", "--backup", tmp_path)
    assert finished.status == 1 and "Traceback" not in finished.output
    assert finished.output.splitlines()[-1].startswith(
        f"{tmp_path} has checkpoints of another program (checkpoint-1): choose another folder"
    )
    assert tf.train.latest_checkpoint(tmp_path) == str(tmp_path / "checkpoint-1")
    train.backup_folder.check_own(backup)


def test_checkpoints_of_another_data_set_are_refused(train: ModuleType, backup: Path) -> None:
    train.backup_folder.check_same(backup, options(backup))
    with pytest.raises(SystemExit, match="was trained on digits, not on mnist: go on with --dataset digits"):
        train.backup_folder.check_same(backup, options(backup, dataset="mnist"))
    for file in backup.glob("ckpt-*"):
        file.unlink()
    train.backup_folder.check_same(backup, options(backup, dataset="mnist"))  # no checkpoints: it may have another
    assert (backup / "dataset.txt").read_text() == "mnist\n--steps-per-epoch 12\n"


def test_checkpoints_of_epochs_with_other_images_are_refused(
    runs: PreparedRuns, chapter_folder: Path, backup: Path
) -> None:
    finished = runs.run(chapter_folder / "train.py", "--backup", backup, "--epochs", 3, "--steps-per-epoch", 10)
    assert finished.status == 1 and "Traceback" not in finished.output
    assert finished.output.splitlines()[-1] == (
        f"What is saved in {backup} was trained with --steps-per-epoch 12, not 10: go on with --steps-per-epoch 12, or "
        "choose another folder."
    )


@pytest.mark.parametrize("is_made_again", [True, False])
def test_a_folder_that_was_removed_meanwhile_says_again_what_it_holds(
    train: ModuleType, backup: Path, is_made_again: bool
) -> None:
    train.backup_folder.check_same(backup, options(backup))
    with train.backup_folder.alone(backup, is_chief=True):
        shutil.rmtree(backup)
        if is_made_again:
            backup.mkdir()
    assert backup.exists() == is_made_again
    assert not is_made_again or (backup / "dataset.txt").read_text() == "digits\n--steps-per-epoch 12\n"
    assert train.whole_checkpoints.in_order(backup) == []


def test_a_checkpoint_beyond_the_steps_that_are_asked_for_is_named(
    runs: PreparedRuns, chapter_folder: Path, backup: Path
) -> None:
    finished = runs.run(chapter_folder / "train.py", "--backup", backup, "--epochs", 1)
    assert finished.status == 1 and "Traceback" not in finished.output
    sentence = f"Checkpoint 15 in {backup} is beyond the 12 steps of --epochs and --steps-per-epoch: ask"
    assert finished.output.splitlines()[-1].startswith(sentence)


def test_a_second_job_in_the_same_folder_is_refused(runs: PreparedRuns, chapter_folder: Path, backup: Path) -> None:
    before = sorted(path.name for path in backup.iterdir())
    with (backup / "dataset.txt").open() as note:
        fcntl.flock(note, fcntl.LOCK_EX)
        finished = runs.run(chapter_folder / "train.py", "--backup", backup)
    assert finished.status == 1
    sentence = f"Another job saves in {backup}: end it, or choose another folder with --backup."
    assert finished.output.splitlines()[-1] == sentence
    assert sorted(path.name for path in backup.iterdir()) == before


def test_an_epoch_longer_than_the_data_set_is_refused_before_anything_is_made(
    runs: PreparedRuns, chapter_folder: Path, tmp_path: Path
) -> None:
    finished = runs.run(chapter_folder / "train.py", "--backup", tmp_path / "backup", "--steps-per-epoch", 50)
    assert finished.status == 2 and "--steps-per-epoch is 22 at most" in finished.output
    assert not (tmp_path / "backup").exists()
