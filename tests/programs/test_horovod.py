"""The programs of notebook 09: the device of a rank, equality with one process, resuming, forgotten steps, fusion."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest

from distlab import checks, launch, programs

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("one_job"),
    pytest.mark.skipif(launch.horovod_problem() is not None, reason=str(launch.horovod_problem())),
]

CHAPTER = programs.FOLDER / "09_horovod"
HOW = {"echo": False, "result": True, "seconds": 900, "start_seconds": 600}


def arrays(weights: list) -> list[np.ndarray]:
    return [np.array(one, np.float32) for one in weights]


def test_each_process_sees_the_gpu_of_its_local_rank_only_and_takes_memory_as_it_needs_it(chapter: Callable) -> None:
    module = chapter("train_tape")
    for gpus, local_rank, chosen in (("abcd", 2, "c"), ("a", 3, "a"), ("", 1, None)):
        config = mock.Mock()
        config.list_physical_devices.side_effect = lambda kind, gpus=gpus: list(gpus) if kind == "GPU" else ["CPU"]
        ours = mock.patch.object(module.hvd, "local_rank", lambda local_rank=local_rank: local_rank)
        with ours, mock.patch.object(module, "tf", SimpleNamespace(config=config)):
            module.pin_device()
        assert config.set_visible_devices.mock_calls == ([mock.call(chosen, "GPU")] if chosen else [])
        assert config.experimental.set_memory_growth.mock_calls == ([mock.call(chosen, True)] if chosen else [])


@pytest.mark.parametrize(("start", "ranks"), [(launch.horovodrun, 2), (launch.mpirun, 3)], ids=["Gloo-2", "MPI-3"])
def test_the_ranks_together_equal_one_process(start: Callable, ranks: int) -> None:
    result = start(CHAPTER / "equal_to_one_process.py", ranks=ranks, **HOW).result
    assert result["ranks"] == ranks and list(result["programs"]) == ["tape", "Keras", "Keras 3"]
    for equality in result["programs"].values():
        assert equality["steps"] == 20
        assert equality["from one process"] < checks.TOLERANCE < 0.01 < equality["moved"]
        assert equality["between ranks"] == 0  # though each begins with its own seed


def test_a_resumed_run_is_the_uninterrupted_one(root: Path, tmp_path: Path, chapter: Callable) -> None:
    runs = launch.mpirun(root / "tests" / "programs" / "horovod_resumed.py", CHAPTER, tmp_path, **HOW).result
    serial = chapter("train_serial")
    # One process, with the batch and the rate of two ranks.
    options = serial.parse(["--epochs", "2", "--batch", "64", "--learning-rate", "0.04"])
    for name, run in runs.items():
        uninterrupted = serial.train(options, arrays(run["first weights"]))["weights"]
        for rank in run["of ranks"]:
            checks.assert_equal_weights(arrays(rank), uninterrupted)
        between = arrays(run["after one epoch"])
        assert checks.largest_difference(between, arrays(run["resumed from"])) == 0
        assert checks.largest_difference(between, uninterrupted) > 0.01
        written = {folder.name: any(folder.iterdir()) for folder in (tmp_path / name).iterdir()}
        assert written == {"rank-0": True, "rank-1": False}


def test_a_forgotten_step_is_noticed_and_no_other_is_accused(chapter: Callable) -> None:
    answers, program = launch.mpirun(CHAPTER / "forgotten_steps.py", **HOW).result, chapter("forgotten_steps")
    assert program.forgotten(answers["nothing"]) == []
    assert {step: program.forgotten(answers[step]) for step in program.FUNCTIONS} == {
        step: [step] for step in program.FUNCTIONS
    }
    race = answers["race"]
    assert race["failures"] > 0 or set(race["kept"]) == {0, 1}


def test_without_fusion_each_gradient_is_all_reduced_alone() -> None:
    """What `measure_options.py` finds of compression and accumulation is compared in the notebook."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("HOROVOD_TIMELINE", raising=False)
        fusion = launch.mpirun(CHAPTER / "measure_options.py", **HOW).result["fusion"]
    fused, alone = fusion["fused"], fusion["not fused"]
    assert alone["all-reduces"] == 40 > 2 * fused["all-reduces"]
    assert alone["bytes"] == fused["bytes"] == 40 * 500 * 4
