"""A damaged or foreign state is named and an older one takes its place; without any the program ends in a sentence.

The programs of chapter 09 and 10 save, files are damaged, and the programs resume.
"""

import argparse
import logging
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from distlab import launch
from distlab.runtime import processes
from tests.prepared_runs import PreparedRuns

# isort: split
import tensorflow as tf

from distlab import saved_states

pytestmark = [pytest.mark.slow]


def cut(file: Path, size: int) -> None:
    file.write_bytes(file.read_bytes()[:size])


def saved(folder: Path, *values: float) -> tf.train.Checkpoint:
    """A checkpoint object, saved in the folder with each of these values in turn."""
    state = tf.train.Checkpoint(value=tf.Variable(tf.zeros(1000)))
    for value in values:
        state.value.assign(tf.fill([1000], value))
        state.save(str(folder / "checkpoint"))
    return state


def test_the_newest_whole_checkpoint_is_taken_and_newer_ones_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = saved(tmp_path, *map(float, range(1, 12)))
    newest = tf.train.latest_checkpoint(tmp_path)
    assert saved_states.checkpoint(newest, tmp_path, state) == newest == str(tmp_path / "checkpoint-11")
    assert capsys.readouterr().out == ""
    cut(tmp_path / "checkpoint-11.data-00000-of-00001", 1000)
    cut(tmp_path / "checkpoint-10.index", 0)
    assert saved_states.checkpoint(newest, tmp_path, state) == str(tmp_path / "checkpoint-9")
    assert float(state.value[0]) == 9
    said = capsys.readouterr().out
    assert re.fullmatch(
        r"checkpoint-11 is damaged \(\w+\), checkpoint-10 is damaged \(\w+\): going on from checkpoint-9\.\n", said
    )


def test_no_training_goes_on_from_values_that_are_not_finite(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = saved(tmp_path, 1.0, float("nan"))
    assert saved_states.checkpoint(tf.train.latest_checkpoint(tmp_path), tmp_path, state).endswith("checkpoint-1")
    assert capsys.readouterr().out == "checkpoint-2 holds values that are not finite: going on from checkpoint-1.\n"
    assert float(state.value[0]) == 1
    state = saved(tmp_path / "inf", float("inf"))
    with pytest.raises(SystemExit, match="can be used: checkpoint-1 holds values that are not finite"):
        saved_states.checkpoint(None, tmp_path / "inf", state)


@pytest.fixture(autouse=True)
def log_level() -> Iterator[None]:
    """TensorFlow's, as it was before a program would have ended."""
    logger = logging.getLogger("tensorflow")
    level = logger.level
    yield
    logger.setLevel(level)


def test_nothing_comes_after_the_sentence_on_another_program_s_states(tmp_path: Path, runs: PreparedRuns) -> None:
    (tmp_path / "program.py").write_text(
        "import tensorflow as tf\nfrom pathlib import Path\nfrom distlab import saved_states\n"
        "values = [tf.Variable(tf.zeros(size)) for size in (3, 3, 7)]\n"
        "saved = tf.train.Checkpoint(first=values[0], second=values[1])\n"
        "other = tf.train.Checkpoint(first=values[2])\n"
        "saved_states.checkpoint(saved.save('saved/checkpoint'), Path('saved'), other)\n"
    )
    done = runs.run(tmp_path / "program.py", folder=tmp_path)
    assert done.status == 1
    assert done.output.splitlines()[-1].startswith("Nothing in saved can be used: checkpoint-1 was saved by another")


def test_states_of_another_program_are_told_from_damaged_ones(tmp_path: Path) -> None:
    saved(tmp_path, 1.0)
    for other in (tf.train.Checkpoint(other=tf.Variable(1.0)), tf.train.Checkpoint(value=tf.Variable(tf.zeros(7)))):
        with pytest.raises(
            SystemExit, match=r"checkpoint-1 was saved by another program, or with other options\. Choose"
        ):
            saved_states.checkpoint(tf.train.latest_checkpoint(tmp_path), tmp_path, other)
    (tmp_path / "empty").mkdir()
    with pytest.raises(SystemExit, match=r"There is nothing saved in .*empty to go on from"):
        saved_states.checkpoint(None, tmp_path / "empty", tf.train.Checkpoint())


def test_the_newest_whole_weights_of_keras_are_loaded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tf.keras.Sequential([tf.keras.layers.Input((3,)), tf.keras.layers.Dense(2)])
    for epoch in (1, 2):
        model.set_weights([tf.fill([3, 2], float(epoch)), tf.zeros(2)])
        model.save_weights(tmp_path / f"{epoch:04d}.weights.h5")
    cut(tmp_path / "0002.weights.h5", 0)
    assert saved_states.weights(tmp_path / "0002.weights.h5", tmp_path, model) == tmp_path / "0001.weights.h5"
    assert float(model.get_weights()[0][0, 0]) == 1
    assert capsys.readouterr().out == "0002.weights.h5 is damaged (OSError): going on from 0001.weights.h5.\n"
    other = tf.keras.Sequential([tf.keras.layers.Input((3,)), tf.keras.layers.Dense(5)])
    with pytest.raises(SystemExit, match=r"0001\.weights\.h5 was saved by another program, or"):
        saved_states.weights(None, tmp_path, other)


def test_a_data_set_that_a_training_cannot_go_on_with_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    saved_states.of_dataset(folder, "digits", resume=True)
    saved_states.of_dataset(folder, "mnist", resume=True)  # nothing is saved there
    saved(folder, 1.0)
    saved_states.of_dataset(folder, "mnist", resume=True)
    with pytest.raises(SystemExit, match=r"new was trained on mnist, not on digits: go on with --dataset mnist, or"):
        saved_states.of_dataset(folder, "digits", resume=True)
    assert (folder / saved_states.NOTE).read_text() == "mnist\n"


def test_options_that_a_training_cannot_go_on_with_are_refused(tmp_path: Path) -> None:
    saved_states.of_dataset(tmp_path, "digits", resume=True, batch=48, learning_rate=0.05)
    saved_states.of_dataset(tmp_path, "digits", resume=True, batch=96, learning_rate=0.05)  # nothing is saved there
    saved(tmp_path, 1.0)
    saved_states.of_dataset(tmp_path, "digits", resume=True, batch=96, learning_rate=0.05)
    with pytest.raises(
        SystemExit, match=r"was trained with --learning-rate 0\.05, not 0\.5: go on with --learning-rate"
    ):
        saved_states.of_dataset(tmp_path, "digits", resume=True, batch=96, learning_rate=0.5)
    with pytest.raises(
        SystemExit, match=r"was trained with --batch 96, not 48: go on with --batch 96, or choose another"
    ):
        saved_states.of_dataset(tmp_path, "digits", resume=True, batch=48, learning_rate=0.05)


def test_a_folder_of_another_program_is_said_to_be_that(tmp_path: Path) -> None:
    saved_states.of_dataset(tmp_path, "digits", resume=True, batch=32, seed=9)
    saved(tmp_path, 1.0)
    with pytest.raises(SystemExit, match=r"is of another program, with --seed: choose another folder\.$"):
        saved_states.of_dataset(tmp_path, "digits", resume=True, batch=48, units=64)
    assert (tmp_path / saved_states.NOTE).read_text() == "digits\n--batch 32\n--seed 9\n"


def test_a_note_is_as_it_was_where_nothing_in_its_folder_can_be_used(tmp_path: Path) -> None:
    saved_states.of_dataset(tmp_path, "digits", resume=True, batch=32, seed=9)
    saved(tmp_path, 1.0)
    before = (tmp_path / saved_states.NOTE).read_text()
    saved_states.of_dataset(tmp_path, "digits", resume=True, batch=32, units=64)  # another program's options
    of_other = tf.train.Checkpoint(value=tf.Variable(0.0), more=tf.Variable(0.0))
    with pytest.raises(SystemExit, match=r"saved by another program"):
        saved_states.checkpoint(tf.train.latest_checkpoint(tmp_path), tmp_path, of_other)
    assert (tmp_path / saved_states.NOTE).read_text() == before


def test_options_of_a_rank_may_change_and_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = argparse.Namespace(batch=32, seed=9, epochs=1, folder=tmp_path, resume=True)
    assert saved_states.kept(options) == {"batch": 32, "seed": 9}
    saved_states.of_dataset(tmp_path, "digits", resume=True, **saved_states.kept(options))
    saved(tmp_path, 1.0)
    kept = {"may_change": saved_states.OF_A_RANK, **saved_states.kept(argparse.Namespace(batch=16, seed=9))}
    saved_states.of_dataset(tmp_path, "digits", resume=True, **kept)
    assert capsys.readouterr().out == (
        f"What is saved in {tmp_path} was trained with --batch 32; the training goes on with --batch 16.\n"
    )
    assert (tmp_path / saved_states.NOTE).read_text() == "digits\n--batch 16\n--seed 9\n"
    with pytest.raises(SystemExit, match=r"was trained with --seed 9, not 8: go on with --seed 9, or choose another"):
        saved_states.of_dataset(tmp_path, "digits", resume=True, **{**kept, "seed": 8})


@pytest.mark.parametrize(
    ("files", "newest"),
    [
        (["checkpoint-9.index", "checkpoint-10.index", "checkpoint"], "checkpoint-10"),
        (["checkpoints/ckpt-30.index", "checkpoints/ckpt-40.index", "fit/model.keras"], "ckpt-40"),
        (["0001.weights.h5", "0002.weights.h5"], "0002.weights.h5"),
    ],
)
def test_a_training_from_the_beginning_is_refused_where_states_are_saved(
    files: list[str], newest: str, tmp_path: Path
) -> None:
    saved_states.of_dataset(tmp_path, "digits", resume=False, batch=48)
    for name in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    with pytest.raises(SystemExit, match=rf"holds checkpoints, the newest is {newest}: add --resume to go on, or cho"):
        saved_states.of_dataset(tmp_path, "mnist", resume=False, batch=96)
    assert (tmp_path / saved_states.NOTE).read_text() == "digits\n--batch 48\n"


def test_files_that_are_no_states_are_no_reason_to_refuse(tmp_path: Path) -> None:
    for name in ("result-1.json", "book.index", "weights.h5", "checkpoint", saved_states.NOTE):
        (tmp_path / name).touch()
    saved_states.check_unused(tmp_path)
    saved_states.check_unused(tmp_path / "new")
    saved_states.of_dataset(tmp_path, "digits", resume=True, batch=48)  # the empty note names nothing


def test_a_folder_in_which_another_job_saves_is_refused_until_that_ends(tmp_path: Path) -> None:
    saved_states.of_dataset(tmp_path, "digits", resume=False)
    saved_states.of_dataset(tmp_path, "digits", resume=True)  # by the same process
    code = "import sys; from distlab import saved_states as s; from pathlib import Path; "
    code += "s.of_dataset(Path(sys.argv[1]), 'digits', resume=True)"
    second = [sys.executable, "-c", code, str(tmp_path)]
    refused = subprocess.run(second, capture_output=True, text=True, timeout=300)
    assert (refused.returncode, refused.stderr) == (
        1,
        f"Another job saves in {tmp_path}: end it, or choose another folder.\n",
    )
    saved_states.of_dataset(tmp_path / "next", "digits", resume=False)  # this process has left the folder
    assert subprocess.run(second, timeout=300).returncode == 0


GOING_ON = {
    "07_multi_worker/train.py": ("--ways loop --images 96 --folder", "--resume --epochs 2"),
    "09_horovod/train_serial.py": ("--epochs 1 --images 64 --folder", "--resume --epochs 2"),
    "09_horovod/train_tape.py": ("--epochs 1 --images 64 --folder", "--resume --epochs 2"),
    "09_horovod/train_keras3.py": ("--epochs 1 --images 64 --folder", "--resume --epochs 2"),
    "11_scaling_and_profiling/train.py": ("--epochs 1 --images 64 --batch 32 --free --folder", "--epochs 2"),
    "10_large_batch_and_warmup/train.py": ("--epochs 1 --images 240 --schedules none --checkpoints", "--epochs 2"),
    "15_clusters/train_resumable.py": ("--steps 2 --checkpoints", ""),
}


@pytest.mark.skipif(launch.horovod_problem() is not None, reason=str(launch.horovod_problem()))
@pytest.mark.parametrize("program", GOING_ON)
def test_no_program_goes_on_with_another_data_set(runs: PreparedRuns, root: Path, tmp_path: Path, program: str) -> None:
    first, more = GOING_ON[program]
    command = [root / "notebooks/programs" / program, *first.split(), tmp_path]
    assert runs.run(*command).status == 0
    note = (tmp_path / saved_states.NOTE).read_text()
    assert note.splitlines()[0] == "digits"
    (tmp_path / saved_states.NOTE).write_text(
        note.replace("digits", "mnist")
    )  # as if all had been trained on it, which may not be here
    (tmp_path / "checkpoint-of-a-job-that-was-stopped").touch()  # train_resumable saves at a signal alone
    finished = runs.run(*command, *more.split())
    assert finished.status == 1 and "Traceback" not in finished.output
    assert f"What is saved in {tmp_path} was trained on mnist, not on digits: " in finished.output.splitlines()[-1]


def test_the_program_of_chapter_07_goes_on_from_an_older_step(runs: PreparedRuns, root: Path, tmp_path: Path) -> None:
    command = [
        root / "notebooks/programs/07_multi_worker/train.py",
        "--ways",
        "loop",
        "--images",
        "480",
        "--folder",
        tmp_path,
    ]
    nothing = runs.run(*command, "--resume")
    assert nothing.status == 1 and "Traceback" not in nothing.output
    assert nothing.output.splitlines()[-1] == f"There is nothing saved in {tmp_path}/checkpoints to go on from."
    assert runs.run(*command, "--epochs", "2").status == 0
    cut(tmp_path / "checkpoints/ckpt-20.data-00000-of-00001", 1000)
    finished = runs.run(*command, "--epochs", "3", "--resume")
    assert finished.status == 0 and ": going on from ckpt-10." in finished.output


def resumed(runs: PreparedRuns, program: Path, folder: Path) -> processes.Finished:
    """Train for two epochs, cut what was saved last, and resume."""
    few = ["--folder", folder, "--images", "320"]
    first = runs.run(program, *few, "--epochs", "2")
    assert first.status == 0, first.output
    for file in [*folder.glob("checkpoint-2.data*"), *folder.glob("0002.weights.h5")]:
        cut(file, 1000)
    return runs.run(program, *few, "--resume", "--epochs", "3")


@pytest.mark.skipif(launch.horovod_problem() is not None, reason=str(launch.horovod_problem()))
@pytest.mark.parametrize(("name", "older"), [("train_tape", "checkpoint-1"), ("train_keras", "0001.weights.h5")])
def test_the_programs_of_chapter_09_go_on_from_an_older_epoch(
    runs: PreparedRuns, root: Path, tmp_path: Path, name: str, older: str
) -> None:
    finished = resumed(runs, root / "notebooks/programs/09_horovod" / f"{name}.py", tmp_path)
    assert finished.status == 0 and "Traceback" not in finished.output
    assert f": going on from {older}." in finished.output


def test_the_program_of_the_capstone_goes_on_from_an_older_epoch(
    runs: PreparedRuns, root: Path, tmp_path: Path
) -> None:
    command = [root / "labs/16_capstone/train_serial.py", "--folder", tmp_path, "--texts", "500"]
    assert "There is nothing saved in" in runs.run(*command, "--resume").output
    assert runs.run(*command, "--epochs", "2").status == 0
    cut(tmp_path / "checkpoint-2.data-00000-of-00001", 1000)
    other = runs.run(*command, "--resume", "--epochs", "3", "--batch", "64")
    assert other.status == 1 and "was trained with --batch 256, not 64: go on" in other.output.splitlines()[-1]
    finished = runs.run(*command, "--resume", "--epochs", "3")
    assert finished.status == 0 and ": going on from checkpoint-1." in finished.output


@pytest.mark.skipif(launch.horovod_problem() is not None, reason=str(launch.horovod_problem()))
def test_the_program_of_chapter_15_names_checkpoints_of_another_program(
    runs: PreparedRuns, root: Path, tmp_path: Path
) -> None:
    saved(tmp_path, 1.0)
    program = root / "notebooks/programs/15_clusters/train_resumable.py"
    finished = runs.run(program, "--checkpoints", tmp_path, "--steps", "2")
    assert finished.status == 1 and "Traceback" not in finished.output
    assert finished.output.splitlines()[-1] == (
        f"Nothing in {tmp_path} can be used: checkpoint-1 was saved by another program, or with other options. Choose "
        "another folder."
    )


@pytest.mark.skipif(launch.horovod_problem() is not None, reason=str(launch.horovod_problem()))
def test_the_program_of_chapter_15_keeps_its_options(runs: PreparedRuns, root: Path, tmp_path: Path) -> None:
    saved_states.of_dataset(tmp_path, "digits", resume=False, batch=48, learning_rate=0.05, units=64)
    saved(tmp_path, 1.0)
    saved_states.of_dataset(tmp_path / "elsewhere", "digits", resume=False)  # this process leaves the folder
    program = root / "notebooks/programs/15_clusters/train_resumable.py"
    for option, before, changed in (("--learning-rate", 0.05, 0.5), ("--units", 64, 128)):
        finished = runs.run(program, "--checkpoints", tmp_path, "--steps", "2", option, changed)
        assert finished.status == 1 and "Traceback" not in finished.output
        assert f"was trained with {option} {before}, not {changed}: go on with" in finished.output.splitlines()[-1]


@pytest.mark.skipif(launch.horovod_problem() is not None, reason=str(launch.horovod_problem()))
def test_the_program_of_chapter_10_names_a_file_that_it_cannot_use(
    runs: PreparedRuns, root: Path, tmp_path: Path
) -> None:
    program = root / "notebooks/programs/10_large_batch_and_warmup/train.py"
    command = [program, "--checkpoints", tmp_path, "--images", "240", "--schedules", "none"]
    assert runs.run(*command, "--epochs", "1").status == 0
    other = runs.run(*command, "--epochs", "2", "--filters", "4")
    assert other.status == 1 and "Traceback" not in other.output
    assert other.output.splitlines()[-1].startswith(f"{tmp_path / 'none.npz'} was saved with --filters 8;")
    faster = runs.run(*command, "--epochs", "2", "--learning-rate", "0.02")
    assert faster.status == 1 and "Traceback" not in faster.output
    assert faster.output.splitlines()[-1].startswith(f"{tmp_path / 'none.npz'} was saved with --learning-rate 0.01;")
    cut(tmp_path / "none.npz", 3000)
    damaged = runs.run(*command, "--epochs", "2")
    assert damaged.status == 1 and "Traceback" not in damaged.output
    assert damaged.output.splitlines()[-1].startswith(f"{tmp_path / 'none.npz'} is damaged (BadZipFile); remove it")
