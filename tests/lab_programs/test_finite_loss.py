"""A training of chapter 15 whose loss is no longer finite ends with one sentence, on all ranks, and writes nothing."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from distlab import launch, programs
from tests.prepared_runs import PreparedRuns

LAB = Path(__file__).parents[2] / "labs" / "15_clusters"
network = programs.module(LAB / "network.py")


@pytest.mark.slow
@pytest.mark.fault
@pytest.mark.parametrize("name", ["train_serial.py", "train_multi_worker.py", "train_horovod.py"])
def test_a_rate_that_is_far_too_large_is_named_and_nothing_is_written(
    name: str, runs: PreparedRuns, tmp_path: Path
) -> None:
    if "horovod" in name and (problem := launch.horovod_problem()):
        pytest.skip(problem)
    words = ["--learning-rate", "1e30", "--steps", "4", "--result", "result.json", "--weights", "weights.npz"]
    environment = {key: value for key, value in os.environ.items() if key != "TF_CONFIG"}
    finished = runs.run(LAB / name, *words, folder=tmp_path, variables=environment)
    assert finished.status == 1 and "Traceback" not in finished.output, finished.output
    sentence = "The loss is no longer finite after step 4: take a smaller --learning-rate."
    assert finished.output.splitlines()[-1] == sentence
    assert list(tmp_path.iterdir()) == []


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
