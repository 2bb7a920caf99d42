"""The programs of notebook 09: what a rank is given, equality with one process, resuming, forgotten steps, options."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest

from distlab import checks, data, launch, programs

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("one_job"),
    pytest.mark.skipif(launch.horovod_problem() is not None, reason=str(launch.horovod_problem())),
]

CHAPTER = programs.FOLDER / "09_horovod"
HOW = {"echo": False, "result": True, "seconds": 900, "start_seconds": 600}
PROGRAMS = ("tape", "Keras", "Keras 3")


def arrays(weights: list) -> list[np.ndarray]:
    return [np.array(one, np.float32) for one in weights]


# What a rank is given


def fed(chapter: Callable, ranks: int, epoch: int = 0) -> list[np.ndarray]:
    """The numbers of the samples that each rank of train_tape is given in an epoch."""
    tape = chapter("train_tape")
    options = tape.parse([])
    of_ranks = []
    for rank in range(ranks):
        with mock.patch.multiple(tape.hvd, size=lambda: ranks, rank=lambda rank=rank: rank):
            batches = tape.batches(options, epoch).take(tape.steps_per_epoch(options))
            of_ranks.append(np.concatenate([numbers for numbers, _, _ in batches.as_numpy_iterator()]))
    return of_ranks


def test_the_shards_cover_every_sample_exactly_once(chapter: Callable) -> None:
    for ranks, epoch in ((1, 0), (2, 0), (2, 1), (4, 0)):
        assert np.array_equal(np.sort(np.concatenate(fed(chapter, ranks, epoch))), np.arange(1280))


@pytest.mark.parametrize("name", ["train_keras", "train_keras3"])
def test_keras_is_fed_the_same_partition(chapter: Callable, name: str) -> None:
    keras, images = chapter(name), data.load("digits").train.images
    for rank, numbers in enumerate(fed(chapter, 2)):
        with mock.patch.multiple(keras.hvd, size=lambda: 2, rank=lambda rank=rank: rank):
            batches = list(keras.batches(keras.parse([]), 0).as_numpy_iterator())
        assert np.array_equal(np.concatenate([batch for batch, _ in batches]), images[numbers])


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


# Equality with one process, resuming


@pytest.mark.parametrize(("start", "ranks"), [(launch.horovodrun, 2), (launch.mpirun, 3)], ids=["Gloo-2", "MPI-3"])
def test_the_ranks_together_equal_one_process(start: Callable, ranks: int) -> None:
    result = start(CHAPTER / "equal_to_one_process.py", ranks=ranks, **HOW).result
    assert result["ranks"] == ranks and list(result["programs"]) == list(PROGRAMS)
    for equality in result["programs"].values():
        assert equality["steps"] == 20
        assert equality["from one process"] < checks.TOLERANCE < 0.01 < equality["moved"]
        assert equality["between ranks"] == 0  # though each begins with its own seed


def test_a_resumed_run_is_the_uninterrupted_one(root: Path, tmp_path: Path, chapter: Callable) -> None:
    runs = launch.mpirun(root / "tests" / "programs" / "horovod_resumed.py", CHAPTER, tmp_path, **HOW).result
    serial = chapter("train_serial")
    # One process, with the batch and the rate of two ranks.
    options = serial.parse(["--epochs", "2", "--batch", "64", "--learning-rate", "0.04"])
    assert list(runs) == list(PROGRAMS)
    for run in runs.values():
        uninterrupted = serial.train(options, arrays(run["first weights"]))["weights"]
        for rank in run["of ranks"]:
            checks.assert_equal_weights(arrays(rank), uninterrupted)
        between = arrays(run["after one epoch"])
        assert checks.largest_difference(between, arrays(run["resumed from"])) == 0
        assert checks.largest_difference(between, uninterrupted) > 0.01
        written = {folder.name: any(folder.iterdir()) for folder in Path(run["folder"]).iterdir()}
        assert written == {"rank-0": True, "rank-1": False}


def test_a_forgotten_step_is_noticed_and_no_other_is_accused(chapter: Callable) -> None:
    answers, program = launch.mpirun(CHAPTER / "forgotten_steps.py", **HOW).result, chapter("forgotten_steps")
    assert program.forgotten(answers["nothing"]) == []
    assert {step: program.forgotten(answers[step]) for step in program.FUNCTIONS} == {
        step: [step] for step in program.FUNCTIONS
    }
    race = answers["race"]
    assert race["failures"] > 0 or set(race["kept"]) == {0, 1}


# Tensor fusion, compression, accumulation


@pytest.fixture(scope="module")
def options() -> dict:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("HOROVOD_TIMELINE", raising=False)
        return launch.mpirun(CHAPTER / "measure_options.py", **HOW).result


def test_without_fusion_each_gradient_is_all_reduced_alone(options: dict) -> None:
    fused, alone = options["fusion"]["fused"], options["fusion"]["not fused"]
    assert alone["all-reduces"] == 40 > 2 * fused["all-reduces"]
    assert alone["bytes"] == fused["bytes"] == 40 * 500 * 4


def test_half_precision_halves_the_bytes_and_loses_precision_and_range(options: dict) -> None:
    none, fp16 = options["compression"]["none"], options["compression"]["fp16"]
    assert (none["bytes"], fp16["bytes"]) == (40_000, 20_000)
    assert none["error"] < 1e-6 < fp16["error"] < 2**-10
    assert none["special"] == ["40000.0", "1.0", "1e-08"]
    assert fp16["special"] == ["inf", "1.0", "0.0"]  # 40,000 + 40,000 is more than a 16-bit float can hold


def test_accumulated_gradients_are_those_of_a_larger_batch_with_fewer_bytes(options: dict) -> None:
    names = ("16, each batch", "16, every 4th batch", "64, each batch")
    each, accumulated, large = (options["accumulation"][name] for name in names)
    assert each["batches"] == accumulated["batches"] == 4 * large["batches"] == 32
    assert accumulated["bytes"] == large["bytes"] == each["bytes"] // 4 == 8 * 101_770 * 4
    assert accumulated["from 64, each"] < checks.TOLERANCE < 1e-3 < each["from 64, each"]
