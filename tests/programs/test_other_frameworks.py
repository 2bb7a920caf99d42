"""The programs of notebook 14 in PyTorch and DeepSpeed: their weights are those of TensorFlow's serial run."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from distlab import checks, frameworks, launch, programs

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_job")]

CHAPTER = frameworks.PROGRAMS
LIMITS = {"echo": False, "result": True, "seconds": 900, "start_seconds": 600}
NETWORK_BYTES = 4 * (9 * 16 + 16 + 13 * 13 * 16 * 64 + 64 + 64 * 10 + 10)


layouts = programs.module(CHAPTER / "layouts.py")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the start of all programs."""
    folder = tmp_path_factory.mktemp("frameworks")
    launch.alone(CHAPTER / "start.py", folder / "start.npz", echo=False)
    return folder


@pytest.fixture(scope="module")
def serial(folder: Path) -> list[np.ndarray]:
    """The weights that TensorFlow trains on one device."""
    file = folder / "serial.npz"
    launch.alone(CHAPTER / "train_tensorflow.py", folder / "start.npz", "--weights", file, echo=False, seconds=900)
    return layouts.read(file)


@pytest.fixture(scope="module")
def run(folder: Path) -> Callable[..., tuple[dict, list[np.ndarray]]]:
    """Runs a PyTorch program under torchrun from the common start; its result and its weights."""
    if reason := frameworks.problem("torch"):
        pytest.skip(reason)

    def run(program: str | Path, *arguments: object, ranks: int) -> tuple[dict, list[np.ndarray]]:
        file = folder / "weights.npz"
        share = ["--batch", 48 // ranks, "--learning-rate", 0.02 / ranks]
        every = [folder / "start.npz", *share, *arguments, "--weights", file]
        how = LIMITS | {"python": frameworks.python("torch"), "environment": {"PYTHONPATH": str(CHAPTER)}}
        result = launch.torchrun(CHAPTER / program, *every, ranks=ranks, **how).result
        return result, layouts.read(file)

    return run


@pytest.mark.parametrize(("program", "ranks"), [("train_ddp.py", 2), ("train_fsdp.py", 3)])
def test_ranks_train_the_serial_runs_weights(run: Callable, serial: list, program: str, ranks: int) -> None:
    result, weights = run(program, ranks=ranks)
    assert (result["ranks"], result["steps"], len(result["losses"])) == (ranks, 20, 20)
    assert checks.largest_difference(weights, serial) < 1e-5
    held = np.array([[rank["parameters"], rank["optimizer"]] for rank in result["held"]])
    if program == "train_ddp.py":
        assert (held == NETWORK_BYTES).all()
    else:  # what all ranks hold together is the network once
        assert held.sum(axis=0).tolist() == [NETWORK_BYTES] * 2
        assert held.max() < 0.6 * NETWORK_BYTES


def test_a_resumed_run_is_the_uninterrupted_one_on_another_number_of_ranks(run: Callable, tmp_path: Path) -> None:
    run("train_fsdp.py", "--folder", tmp_path, ranks=2)
    result, resumed = run("train_fsdp.py", "--folder", tmp_path, "--resume", "--epochs", 2, ranks=1)
    assert result["steps"] == 20
    _, uninterrupted = run("train_fsdp.py", "--epochs", 2, ranks=1)
    assert checks.largest_difference(resumed, uninterrupted) < 1e-5


def test_every_stage_of_zero_trains_the_serial_runs_weights(folder: Path, serial: list) -> None:
    if reason := frameworks.problem("deepspeed"):
        pytest.skip(reason)
    arguments = [folder / "start.npz", "--stages", 0, 1, 2, 3, "--weights", folder / "zero.npz"]
    how = LIMITS | {"python": frameworks.python("deepspeed")}
    result = launch.torchrun(CHAPTER / "train_deepspeed.py", *arguments, ranks=2, **how).result
    for stage in range(4):
        weights = layouts.read(folder / f"zero_{stage}.npz")
        assert checks.largest_difference(weights, serial) < 1e-5
        held = result[str(stage)]["held"][0]
        assert held["optimizer"] == pytest.approx(NETWORK_BYTES / (2 if stage else 1), rel=1e-3)
        assert held["parameters"] == pytest.approx(NETWORK_BYTES / (2 if stage == 3 else 1), rel=1e-3)
