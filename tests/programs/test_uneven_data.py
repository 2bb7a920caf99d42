"""1,000 samples on three workers: who sees which, and the weighted metric is the one of a single process."""

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from distlab import launch, programs

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_job")]

SAMPLES, WORKERS = 1000, 3
EVEN, EMPTY = 96, 111
"""Sizes of the global batch: the last batch has 40 samples, or 1, so that two of the three workers get none."""

COMPLETE = ("sharded", "padded")
DEADLINE = 900


@pytest.fixture(scope="module")
def path() -> Path:
    return Path(__file__).parents[2] / "notebooks/programs/07_multi_worker/uneven_data.py"


@pytest.fixture(scope="module")
def program(path: Path) -> ModuleType:
    return programs.module(path)


@pytest.fixture(scope="module")
def result(path: Path) -> dict:
    """What three workers found."""
    return launch.tensorflow(
        path,
        *("--samples", SAMPLES, "--global-batch", EVEN, EMPTY),
        workers=WORKERS,
        seconds=DEADLINE,
        start_seconds=DEADLINE,
        echo=False,
        result=True,
    ).result


def fed(result: dict, feeding: str, size: int) -> dict:
    (found,) = [one for one in result["feedings"] if (one["feeding"], one["global_batch"]) == (feeding, size)]
    return found


def counts(found: dict) -> np.ndarray:
    return np.bincount(np.concatenate(found["samples"]), minlength=SAMPLES)


@pytest.mark.parametrize("size", [EVEN, EMPTY])
@pytest.mark.parametrize("feeding", COMPLETE)
def test_sharding_alone_loses_nothing_and_repeats_nothing(result: dict, feeding: str, size: int) -> None:
    found = fed(result, feeding, size)
    assert np.all(counts(found) == 1)
    assert found["lost"] == found["more_than_once"] == []


def test_the_last_batch_is_divided_too_and_a_worker_without_samples_goes_on_with_an_empty_batch(result: dict) -> None:
    even, empty = fed(result, "sharded", EVEN), fed(result, "sharded", EMPTY)
    assert even["batch_sizes"] == [[32] * 10 + [14], [32] * 10 + [14], [32] * 10 + [12]]
    assert empty["batch_sizes"] == [[37] * 9 + [1], [37] * 9 + [0], [37] * 9 + [0]]


def test_drop_remainder_loses_the_last_samples(result: dict) -> None:
    assert fed(result, "drop_remainder", EVEN)["lost"] == list(range(960, 1000))
    assert fed(result, "drop_remainder", EMPTY)["lost"] == [999]
    assert counts(fed(result, "drop_remainder", EVEN)).max() == 1


def test_repeat_fills_the_last_batch_with_the_first_samples(result: dict) -> None:
    for size, steps in [(EVEN, 11), (EMPTY, 10)]:
        found = fed(result, "repeat", size)
        assert found["lost"] == []
        assert found["more_than_once"] == list(range(steps * size - SAMPLES))
        assert counts(found).max() == 2


def test_without_sharding_every_worker_sees_everything_in_three_times_the_steps(result: dict) -> None:
    found = fed(result, "not_sharded", EVEN)
    assert found["samples"] == [list(range(SAMPLES))] * WORKERS
    assert found["batch_sizes"] == [[32] * 31 + [8]] * WORKERS
    assert found["more_than_once"] == list(range(SAMPLES))


# Metrics


def close(one: dict, other: dict, tolerance: float = 1e-5) -> bool:
    return all(one[name] is not None and abs(one[name] - other[name]) < tolerance for name in other)


@pytest.mark.parametrize("size", [EVEN, EMPTY])
@pytest.mark.parametrize("feeding", COMPLETE)
def test_the_weighted_metric_is_that_of_one_process(result: dict, feeding: str, size: int) -> None:
    found = fed(result, feeding, size)
    assert close(found["weighted"], result["one_process"])
    assert size == EMPTY or not close(found["mean_of_batches"], result["one_process"], 0.003)


def test_all_averages_follow_from_who_saw_which_sample(result: dict, program: ModuleType) -> None:
    arrays = program.load("digits", SAMPLES)

    def metrics(numbers: list[int]) -> np.ndarray:
        images, labels, kernel, bias = arrays
        return program.one_process(images[numbers], labels[numbers], kernel, bias) if numbers else np.full(2, np.nan)

    for found in result["feedings"]:
        batches = []
        for numbers, sizes in zip(found["samples"], found["batch_sizes"], strict=True):
            ends = np.cumsum(sizes)
            batches += [metrics(numbers[end - size : end]) for size, end in zip(sizes, ends, strict=True)]
        everything = [number for numbers in found["samples"] for number in numbers]
        for name, expected in {
            "mean_of_workers": np.mean([metrics(numbers) for numbers in found["samples"]], axis=0),
            "mean_of_batches": np.mean(batches, axis=0),
            "weighted": metrics(everything),
        }.items():
            found_here = np.array([found[name][metric] for metric in ("accuracy", "loss")], float)
            np.testing.assert_allclose(found_here, expected, atol=1e-5, err_msg=f"{found['feeding']}: {name}")


# Keras


def test_keras_evaluates_right_and_trains_wrong_until_samples_have_weights(result: dict) -> None:
    for one in result["keras"]:
        assert close(one["evaluate"], result["one_process"])
        assert one["weights_off"]["fit"] > 1e-5
        assert one["weights_off"]["weighted_fit"] < 1e-5
    assert (
        result["keras"][1]["weights_off"]["fit"] > 1e-3
    )  # one sample on one of three workers: a third of its gradient


def test_a_loop_over_one_s_own_part_hangs_where_the_others_have_no_more_steps(path: Path) -> None:
    with pytest.raises(launch.LaunchError) as raised:
        launch.tensorflow(
            path, "--own-loop", "--global-batch", 37, workers=WORKERS, seconds=120, start_seconds=DEADLINE, echo=False
        )
    output = raised.value.run.output
    assert "step 10: 1 samples" in output["worker 0"]
    assert "the epoch is over" not in output["worker 0"]
    for worker in ("worker 1", "worker 2"):
        assert "step 9: 37 samples" in output[worker]
        assert "step 10" not in output[worker]
