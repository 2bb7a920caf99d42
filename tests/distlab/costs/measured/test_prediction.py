"""Predictions from measurements whose parameters are known, compared with the ring written out by hand."""

from dataclasses import replace

import numpy as np
import pytest

from distlab.costs import all_reduce
from distlab.costs.measured.measurement import Spread, WrongMeasurement
from distlab.costs.measured.prediction import model_of, most_ranks, predict_measured
from tests.distlab.costs.measured.synthetic import ALPHA, BETA, COMPUTE, GRADIENTS, OVERHEAD, exactly, measurement, ring

RANKS = np.array([1, 2, 3, 4, 8, 64, 1024])
TOTAL = sum(GRADIENTS)


def step(communication: float, hidden: float = 0.25) -> float:
    return COMPUTE + communication - hidden * min(COMPUTE, communication)


def test_alpha_and_beta_of_the_sweep_are_found() -> None:
    model = model_of(measurement())
    assert model.fit.latency == pytest.approx(ALPHA)
    assert model.fit.seconds_per_byte == pytest.approx(BETA)
    assert (model.correction, model.hidden_share) == (pytest.approx(1), pytest.approx(0.25))
    assert model.deviation == pytest.approx(0, abs=1e-9)


def test_the_step_of_any_number_of_ranks_is_that_of_the_ring() -> None:
    prediction = predict_measured(measurement(), RANKS)
    expected = [step(ring(p, TOTAL) if p > 1 else 0.0) for p in RANKS]
    assert prediction.step_seconds == pytest.approx(expected)
    assert prediction.images_per_second == pytest.approx(RANKS * 16 / np.array(expected))
    assert prediction.efficiency == pytest.approx(COMPUTE / np.array(expected))


def test_two_numbers_of_ranks_separate_the_overhead_from_the_latency() -> None:
    pair = [measurement(2, overhead=OVERHEAD), measurement(4, overhead=OVERHEAD)]
    prediction = predict_measured(pair, RANKS)
    assert prediction.model.fit.overhead == pytest.approx(OVERHEAD)
    assert prediction.model.fit.latency == pytest.approx(ALPHA)
    expected = [step(ring(p, TOTAL, OVERHEAD) if p > 1 else 0.0) for p in RANKS]
    assert prediction.step_seconds == pytest.approx(expected)
    assert prediction.upper_seconds == pytest.approx(expected)


def test_one_number_of_ranks_leaves_the_overhead_open_and_the_interval_covers_it() -> None:
    prediction = predict_measured(measurement(2, overhead=OVERHEAD), RANKS)
    truth = np.array([step(ring(p, TOTAL, OVERHEAD) if p > 1 else 0.0) for p in RANKS])
    assert prediction.step_seconds[1] == pytest.approx(truth[1])
    assert np.all(prediction.lower_seconds <= truth * (1 + 1e-9))
    assert np.all(prediction.upper_seconds >= truth * (1 - 1e-9))
    assert prediction.step_seconds[-1] > 2 * truth[-1]  # all of it taken as latency


def test_the_prediction_agrees_with_what_was_measured_where_it_was_measured() -> None:
    slower = replace(measurement(), gradients_alone=exactly(0.05), step=exactly(0.061))
    prediction = predict_measured(slower, [2])
    assert prediction.communication_seconds == pytest.approx([0.05])
    assert prediction.step_seconds == pytest.approx([0.061])
    assert prediction.model.correction == pytest.approx(0.05 / ring(2, TOTAL))


def test_a_step_longer_than_both_parts_stays_longer() -> None:
    prediction = predict_measured(measurement(hidden=-0.5), [2, 1024])
    assert prediction.step_seconds == pytest.approx([step(ring(p, TOTAL), -0.5) for p in (2, 1024)])


def test_no_more_than_all_is_hidden() -> None:
    assert model_of(replace(measurement(), step=exactly(0.01))).hidden_share == 1


def test_the_interval_contains_what_it_should_of_noisy_sweeps() -> None:
    random, inside, runs = np.random.default_rng(5), 0, 300
    truth = step(ring(3, TOTAL))
    for _ in range(runs):
        noisy = [exactly(spread.median * random.normal(1, 0.05)) for spread in measurement().all_reduces]
        alone = exactly(ring(2, TOTAL) * random.normal(1, 0.05))
        whole = exactly(step(alone.median))
        run = replace(measurement(), all_reduces=tuple(noisy), gradients_alone=alone, step=whole)
        prediction = predict_measured(run, [3])
        inside += bool(prediction.lower_seconds[0] <= truth <= prediction.upper_seconds[0])
    assert inside / runs > 0.9


def test_the_interval_grows_with_the_spread_of_the_computing() -> None:
    noisy = replace(measurement(), step_alone=Spread(COMPUTE, 0.9 * COMPUTE, 1.1 * COMPUTE))
    calm, wide = (predict_measured(each, [1]) for each in (measurement(), noisy))
    assert calm.upper_seconds == pytest.approx(calm.lower_seconds)
    # Two standard errors of the median of 20: the quartiles are 0.6745 deviations away.
    expected = 2 * np.sqrt(np.pi / 2) * (0.1 * COMPUTE / 0.6745) / np.sqrt(20)
    assert wide.upper_seconds - wide.step_seconds == pytest.approx([expected], rel=1e-3)


@pytest.mark.parametrize(("cores", "expected"), [(2, [1, 1.5, 4]), (3, [1, 1, 8 / 3]), (8, [1, 1, 1])])
def test_hosts_that_share_cores_take_turns(cores: int, expected: list[float]) -> None:
    shared = replace(measurement(), machines=1, cores=cores)
    prediction = predict_measured(shared, [2, 3, 8])
    assert prediction.compute_seconds == pytest.approx(COMPUTE * np.array(expected))
    assert prediction.devices == pytest.approx([cores] * 3)
    alone = predict_measured(shared, [2, 3, 8], own_cores=True)
    assert alone.compute_seconds == pytest.approx([COMPUTE] * 3)
    assert alone.devices == pytest.approx(cores / 2 * np.array([2, 3, 8]))


def test_core_hours_are_those_of_all_cores() -> None:
    prediction = predict_measured(measurement(), [8])
    seconds = 1_000_000 / 16 / 8 * step(ring(8, TOTAL))
    assert prediction.device == "core"
    assert prediction.device_hours(1_000_000) == pytest.approx([16 * seconds / 3600])


def test_gpu_hours_are_those_of_all_gpus() -> None:
    prediction = predict_measured(replace(measurement(), gpus=2), [8])
    assert prediction.device == "GPU"
    assert prediction.device_hours(1_000_000) == pytest.approx(
        [8 / 16 * predict_measured(measurement(), [8]).device_hours(1_000_000)[0]]
    )


@pytest.mark.parametrize(("fusion_bytes", "all_reduces"), [(2_000_000, 1), (1_999_999, 2), (1, 2)])
def test_gradients_beyond_the_fusion_threshold_take_more_all_reduces(fusion_bytes: int, all_reduces: int) -> None:
    model = model_of(replace(measurement(), fusion_bytes=fusion_bytes))
    assert model.all_reduces == all_reduces
    expected = 2 * all_reduces * ALPHA + TOTAL * BETA
    assert model.communication_seconds(np.float64(2)) / model.correction == pytest.approx(expected)


@pytest.mark.parametrize(
    ("communication", "versions", "algorithm"),
    [
        ("Horovod over Gloo", {"python": "3"}, "ring"),
        ("Horovod over MPI", {"python": "3"}, "halving_doubling"),
        ("Horovod over MPI", {"python": "3", "nccl": "23203"}, "ring"),
    ],
)
def test_the_algorithm_is_that_of_the_library(communication: str, versions: dict[str, str], algorithm: str) -> None:
    model = model_of(replace(measurement(), communication=communication, versions=versions))
    assert model.algorithm == algorithm
    expected = all_reduce(algorithm, [3, 4], TOTAL).seconds(model.fit.latency, model.fit.seconds_per_byte)
    assert model.communication_seconds(np.array([3.0, 4.0])) == pytest.approx(expected * model.correction)


def test_one_host_says_nothing_of_a_network() -> None:
    one_host = replace(measurement(2), ranks_per_host=(2,), machines=1, cores=4)
    assert most_ranks(one_host) == 4
    assert most_ranks(measurement(2)) is None
    predict_measured(one_host, [1, 4])
    with pytest.raises(
        WrongMeasurement, match="One host with 4 cores was measured, and so no network: ask for at most 4"
    ):
        predict_measured(one_host, [5])


def test_a_sweep_of_one_size_is_refused() -> None:
    short = replace(measurement(), sizes=(1024,), all_reduces=(exactly(0.01),))
    with pytest.raises(WrongMeasurement, match="The sweep of all-reduces says too little: these 1 measurements cannot"):
        predict_measured(short, [4])


def test_impossible_ranks_are_refused() -> None:
    with pytest.raises(ValueError, match="a number of ranks is a whole number of at least 1, not 0"):
        predict_measured(measurement(), [0, 1])
