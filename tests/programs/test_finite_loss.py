"""A training whose loss is no longer finite ends with one sentence, on all ranks, and saves and writes nothing."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from distlab import launch, programs, saved_states
from tests.prepared_runs import PreparedRuns

FOLDER = Path(__file__).parents[2] / "notebooks/programs"
network = programs.module(FOLDER / "15_clusters" / "network.py")
FEW_STEPS = "--steps 4 --weights weights.npz"
PROGRAMS = [
    ("15_clusters/train_serial.py", FEW_STEPS),
    ("15_clusters/train_multi_worker.py", FEW_STEPS),
    ("15_clusters/train_horovod.py", FEW_STEPS),
    ("07_multi_worker/train.py", "--ways fit --images 192 --folder saved"),
    ("07_multi_worker/train.py", "--ways loop --images 192 --folder saved"),
    ("09_horovod/train_serial.py", "--images 128"),  # what this one saves, it saves before
    ("09_horovod/train_serial_keras.py", "--images 128 --folder saved"),
    ("09_horovod/train_tape.py", "--images 128 --folder saved"),
    ("09_horovod/train_keras.py", "--images 128 --folder saved"),
    ("09_horovod/train_keras3.py", "--images 128 --folder saved"),
    ("11_scaling_and_profiling/train.py", "--images 128 --batch 32 --folder saved"),
]
"""Programs, each with options for four steps on one rank."""
SENTENCE = "The loss is no longer finite after step 4: take a smaller --learning-rate."


@pytest.mark.slow
@pytest.mark.parametrize(("name", "options"), PROGRAMS)
def test_a_rate_that_is_far_too_large_is_named_and_nothing_is_written(
    name: str, options: str, runs: PreparedRuns, tmp_path: Path
) -> None:
    program = FOLDER / name
    if "horovod" in program.read_text() and (problem := launch.horovod_problem()):
        pytest.skip(problem)
    words = ["--learning-rate", "1e30", "--result", "result.json", *options.split()]
    environment = {key: value for key, value in os.environ.items() if key != "TF_CONFIG"}
    finished = runs.run(program, *words, folder=tmp_path, variables=environment)
    assert finished.status == 1 and "Traceback" not in finished.output, finished.output
    assert finished.output.splitlines()[-1] == SENTENCE
    assert {file.name for file in tmp_path.rglob("*") if file.is_file()} <= {saved_states.NOTE}


# No rank fails, so that the launcher ends none. It starts faster where it sees the import of TensorFlow.
CAUGHT = """
import runpy, distlab, tensorflow
try:
    runpy.run_path(PROGRAM, run_name="__main__")
except SystemExit as end:
    print(end)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("start", "name"),
    [(launch.tensorflow, "07_multi_worker/train.py"), (launch.horovodrun, "09_horovod/train_tape.py")],
)
def test_no_rank_waits_for_one_that_has_ended(start: Callable, name: str, tmp_path: Path) -> None:
    if "horovod" in name and (problem := launch.horovod_problem()):
        pytest.skip(problem)
    program, saved = tmp_path / "caught.py", tmp_path / "saved"
    program.write_text(CAUGHT.replace("PROGRAM", repr(str(FOLDER / name))))
    run = start(program, "--learning-rate", 1e30, "--folder", saved, seconds=600, echo=False)
    ranks = [process for process in run.output if process.endswith((" 0", " 1"))]
    assert len(ranks) == 2 and all("no longer finite after step 20:" in run.output[rank] for rank in ranks)
    assert [file.name for file in saved.iterdir()] == [saved_states.NOTE]


@pytest.mark.slow
def test_the_program_of_the_capstone_names_its_own_option(runs: PreparedRuns, tmp_path: Path) -> None:
    words = ["--rate", "1e30", "--texts", "128", "--batch", "32", "--epochs", "1"]
    finished = runs.run(FOLDER.parents[1] / "labs/16_capstone/train_serial.py", *words, folder=tmp_path)
    assert finished.status == 1 and finished.output.splitlines()[-1] == SENTENCE.replace("learning-", "")


def trained(folder: Path, rank: int, steps: int) -> "network.Batches":
    """The batches of a rank that has trained, or had nothing left to do."""
    options = network.parser("").parse_args(["--batch", "2", "--steps", "5", "--result", str(folder / "result.json")])
    batches = network.Batches(options, rank, ranks=2, steps_done=5 - steps)
    assert len(list(batches)) == steps
    return batches


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize(("loss", "weight"), [(np.nan, 1.0), (np.inf, 1.0), (0.5, np.nan), (0.5, np.inf)])
def test_every_rank_ends(rank: int, loss: float, weight: float, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no longer finite after step 5"):
        network.report(trained(tmp_path, rank, 1), "Horovod", loss, [np.array([weight], np.float32)])
    assert list(tmp_path.iterdir()) == []


def test_a_job_that_has_nothing_left_to_do_writes_json_without_a_loss(tmp_path: Path) -> None:
    network.report(trained(tmp_path, 0, 0), "Horovod", float("nan"), [np.ones(1, np.float32)])
    text = (tmp_path / "result.json").read_text()
    result = json.loads(text, parse_constant=pytest.fail)
    assert (result["steps"], result["loss"], result["step_seconds"], result["norm"]) == (5, None, None, 1.0)
