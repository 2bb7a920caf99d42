"""Programs that are started in a folder with checkpoints: they go on, or end with a sentence and change nothing."""

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from distlab import frameworks, launch, programs
from distlab.runtime import processes
from tests.prepared_runs import PreparedRuns

pytestmark = [pytest.mark.slow]

SECONDS = 900
Started = Callable[..., processes.Finished]
NEEDS_HOROVOD = pytest.mark.skipif(launch.horovod_problem() is not None, reason=str(launch.horovod_problem()))
NEEDS_TORCH = pytest.mark.skipif(frameworks.problem("torch") is not None, reason=str(frameworks.problem("torch")))

IN_07 = ["--images", "96"]  # two steps in an epoch
PROGRAMS = {
    "07_multi_worker/train.py": IN_07,
    "09_horovod/train_serial.py": ["--images", "64"],
    "09_horovod/train_serial_keras.py": ["--images", "64"],
    "16_capstone/train_serial.py": ["--texts", "500", "--epochs", "2"],
}
# Those of chapter 09 do as that of the capstone; `pytest -m fault` runs them, too.
TRIED = [name for name in PROGRAMS if "DISTLAB_FAULTS" in os.environ or not name.startswith("09")]
WITH_START = {
    "train_tensorflow.py": pytest.param("train_tensorflow.py"),
    "train_horovod.py": pytest.param("train_horovod.py", marks=NEEDS_HOROVOD),
    "train_ddp.py": pytest.param("train_ddp.py", marks=NEEDS_TORCH),
    "train_fsdp.py": pytest.param("train_fsdp.py", marks=NEEDS_TORCH),
}


def files_of(folder: Path) -> dict[str, tuple[int, int]]:
    """Each file with its size and when it was written."""
    files = [file for file in sorted(folder.rglob("*")) if file.is_file()]
    return {str(file.relative_to(folder)): (file.stat().st_size, file.stat().st_mtime_ns) for file in files}


@pytest.fixture
def started(runs: PreparedRuns) -> Started:
    """Run one process of a program to its end; with PyTorch in an interpreter of its own."""

    def run(program: Path, *arguments: object) -> processes.Finished:
        if program.name not in ("train_ddp.py", "train_fsdp.py"):
            return runs.run(program, *arguments)
        return processes.run([str(frameworks.python("torch")), str(program), *map(str, arguments)], SECONDS)

    return run


def assert_refused(finished: processes.Finished, folder: Path) -> None:
    """It ended with the sentence about the folder alone."""
    assert finished.status == 1 and "Traceback" not in finished.output, finished.output
    last = finished.output.splitlines()[-1]
    assert last.startswith(f"{folder} holds checkpoints, the newest is ")
    assert last.endswith(": add --resume to go on, or choose another folder.")


@pytest.mark.parametrize("name", TRIED)
def test_a_program_begins_in_no_folder_that_has_checkpoints(
    started: Started, root: Path, tmp_path: Path, name: str
) -> None:
    folder = "labs" if name.startswith("16") else "notebooks/programs"
    command = [root / folder / name, "--folder", tmp_path, *PROGRAMS[name]]
    first = started(*command)
    assert first.status == 0, first.output
    before = files_of(tmp_path)
    assert_refused(started(*command), tmp_path)
    assert files_of(tmp_path) == before


# Chapter 07


@pytest.fixture(scope="module")
def in_07(root: Path) -> Path:
    return root / "notebooks/programs/07_multi_worker/train.py"


@pytest.fixture(scope="module")
def saved_in_07(in_07: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which two workers have trained two epochs, both ways."""
    folder = tmp_path_factory.mktemp("saved")
    launch.tensorflow(in_07, *IN_07, "--epochs", 2, "--folder", folder, echo=False, seconds=SECONDS)
    return folder


OTHER_OPTIONS = [
    (
        ["--resume", "--epochs", "1"],
        "Checkpoint 4 in {folder}/checkpoints is beyond the 2 steps of --epochs 1: ask for",
    ),
    (["--resume", "--epochs", "3", "--seed", "8"], "What is saved in {folder} was trained with --seed 7, not 8: go on"),
    (["--epochs", "3"], "{folder} holds checkpoints, the newest is ckpt-4: add --resume to go on, or choose another"),
]


@pytest.mark.parametrize(("options", "sentence"), OTHER_OPTIONS)
def test_every_worker_says_why_it_cannot_go_on_before_anything_is_trained(
    in_07: Path, saved_in_07: Path, options: list[str], sentence: str
) -> None:
    before = files_of(saved_in_07)
    with pytest.raises(launch.WorkerFailed) as failed:
        launch.tensorflow(in_07, *IN_07, "--folder", saved_in_07, *options, echo=False, seconds=SECONDS)
    assert failed.value.exit_code == 1
    for worker in range(2):
        output = failed.value.run.output[f"worker {worker}"]
        assert output.splitlines()[-1].startswith(sentence.format(folder=saved_in_07))
        assert "Traceback" not in output
    states = {name: state for name, state in before.items() if name != "trained_on.txt"}
    assert states.items() <= files_of(saved_in_07).items()


@pytest.mark.parametrize(("options", "sentence"), OTHER_OPTIONS)
def test_one_process_says_so_too(
    started: Started, in_07: Path, saved_in_07: Path, options: list[str], sentence: str
) -> None:
    finished = started(in_07, *IN_07, "--folder", saved_in_07, *options)
    assert finished.status == 1 and "Traceback" not in finished.output
    assert finished.output.splitlines()[-1].startswith(sentence.format(folder=saved_in_07))


def test_a_finished_job_of_two_workers_ends_well_and_one_that_is_not_says_where_it_begins(
    in_07: Path, saved_in_07: Path
) -> None:
    resume = [in_07, *IN_07, "--folder", saved_in_07, "--resume", "--epochs"]
    done = launch.tensorflow(*resume, 2, echo=False, seconds=SECONDS)
    more = launch.tensorflow(*resume, 3, echo=False, seconds=SECONDS)
    for worker in range(2):
        assert done.output[f"worker {worker}"].splitlines()[-1] == "All steps are done; --epochs can ask for more."
        assert "the loop begins after step 4" in more.output[f"worker {worker}"]
    assert (saved_in_07 / "checkpoints" / "ckpt-6.index").exists()


# Chapter 14


@pytest.fixture(scope="module")
def in_14(root: Path) -> Path:
    return root / "notebooks/programs/14_other_frameworks"


@pytest.fixture(scope="module")
def start(runs: PreparedRuns, in_14: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("start") / "start.npz"
    assert runs.run(in_14 / "start.py", file, "--images", 96).status == 0
    return file


@pytest.mark.parametrize("name", WITH_START.values())
def test_a_finished_training_has_nothing_left_to_do_and_keeps_its_result(
    started: Started, in_14: Path, start: Path, tmp_path: Path, name: str
) -> None:
    folder, result, weights = tmp_path / "saved", tmp_path / "result.json", tmp_path / "weights.npz"
    command = [in_14 / name, start, "--folder", folder, "--result", result]
    first = started(*command)
    assert first.status == 0, first.output
    before, text = files_of(folder), result.read_text()
    assert_refused(started(*command), folder)
    again = started(*command, "--resume", "--weights", weights)
    assert again.status == 0 and "Traceback" not in again.output, again.output
    assert again.output.splitlines()[-1].endswith("no steps: all epochs are done; --epochs can ask for more")
    assert (files_of(folder), result.read_text()) == (before, text) and weights.exists()


@NEEDS_HOROVOD
def test_the_program_of_chapter_14_says_from_which_checkpoint_it_goes_on(
    started: Started, in_14: Path, start: Path, tmp_path: Path
) -> None:
    command = [in_14 / "train_horovod.py", start, "--folder", tmp_path]
    assert started(*command).status == 0
    more = started(*command, "--resume", "--epochs", 2)
    assert more.status == 0 and f"going on from {tmp_path}/checkpoint-1\n" in more.output


@pytest.fixture
def layouts(in_14: Path) -> ModuleType:
    return programs.module(in_14 / "layouts.py")


def start_file(folder: Path, image: int = 0) -> Path:
    file = folder / f"start_{image}.npz"
    np.savez(file, images=np.full((2, 28, 28), image), labels=np.zeros(2))
    return file


def test_a_resumed_run_of_chapter_14_has_the_options_of_the_first(
    layouts: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(resume: bool = True, image: int = 0, **others: float) -> None:
        options = argparse.Namespace(folder=tmp_path, resume=resume, start=start_file(tmp_path, image), **others)
        layouts.check_folder(argparse.ArgumentParser(), options, "checkpoint-*")

    before = f"What is saved in {tmp_path} was trained"
    for size in ("batch", "global_batch"):
        run(resume=False, learning_rate=0.01, **{size: 24})
        (tmp_path / "checkpoint-1.index").touch()
        run(learning_rate=0.01, **{size: 24})
        assert capsys.readouterr().out == ""
        with pytest.raises(SystemExit, match=f"{before} on other images than those of .*start_1.npz"):
            run(image=1, learning_rate=0.01, **{size: 24})
        if size == "batch":  # of one rank: a run with another number of ranks has another one
            run(learning_rate=0.02, batch=24)
            assert capsys.readouterr().out == f"{before} with --learning-rate 0.01; this run has 0.02.\n"
            (tmp_path / "checkpoint-1.index").unlink()
    with pytest.raises(SystemExit, match=f"{before} with --global-batch 24: go on with it, or choose another folder"):
        run(learning_rate=0.01, global_batch=48)


def test_checkpoints_are_told_from_other_files_of_a_folder(
    layouts: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def check(folder: Path | None, resume: bool) -> None:
        options = argparse.Namespace(folder=folder, resume=resume, start=start)
        layouts.check_folder(argparse.ArgumentParser(), options, "checkpoint-*")

    start = start_file(tmp_path)
    (tmp_path / "result.json").touch()
    for folder in (None, tmp_path, tmp_path / "mistyped"):
        check(folder, resume=False)
        with pytest.raises(SystemExit):
            check(folder, resume=True)
        assert "--resume needs the --folder in which a run has saved" in capsys.readouterr().err
    for name, seconds in (("checkpoint-9.index", 1000), ("checkpoint-10.index", 2000)):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (seconds, seconds))
    check(tmp_path, resume=True)
    with pytest.raises(SystemExit, match=r"holds checkpoints, the newest is checkpoint-10: add --resume to go on"):
        check(tmp_path, resume=False)


# Chapter 16


def test_the_capstone_s_program_goes_on_or_has_nothing_left_to_do(started: Started, root: Path, tmp_path: Path) -> None:
    command = [root / "labs/16_capstone/train_serial.py", "--texts", 500, "--folder", tmp_path, "--epochs"]
    assert started(*command, 2).status == 0
    before = files_of(tmp_path)
    for epochs in (1, 2):
        finished = started(*command, epochs, "--resume")
        assert finished.status == 0 and "Traceback" not in finished.output
        assert f"The newest checkpoint in {tmp_path} is checkpoint-2.\n" in finished.output
        assert finished.output.splitlines()[-1] == "All epochs are done; --epochs can ask for more."
    assert files_of(tmp_path) == before
    more = started(*command, 3, "--resume")
    assert more.status == 0 and "2 steps, last loss" in more.output
    assert set(files_of(tmp_path)) > set(before)
