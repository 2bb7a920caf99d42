"""Predictions from measurements whose parameters are known, compared with the ring written out by hand."""

from dataclasses import replace

import numpy as np
import pytest

from distlab.costs import all_reduce
from distlab.costs.measured.measurement import WrongMeasurement
from distlab.costs.measured.prediction import predict_measured
from tests.distlab.costs.measured.synthetic import ALPHA, BETA, COMPUTE, GRADIENTS, OVERHEAD, exactly, measurement, ring

RANKS = np.array([1, 2, 3, 4, 8, 64, 1024])
TOTAL = sum(GRADIENTS)


def step(communication: float, hidden: float = 0.25) -> float:
    return COMPUTE + communication - hidden * min(COMPUTE, communication)


def steps(overhead: float = 0.0, hidden: float = 0.25) -> np.ndarray:
    return np.array([step(ring(p, TOTAL, overhead) if p > 1 else 0.0, hidden) for p in RANKS])


@pytest.mark.parametrize("hidden", [0.25, -0.5])
def test_the_step_of_any_number_of_ranks_is_that_of_the_ring(hidden: float) -> None:
    prediction, expected = predict_measured(measurement(hidden=hidden), RANKS), steps(hidden=hidden)
    assert (prediction.fit.latency, prediction.fit.seconds_per_byte) == pytest.approx((ALPHA, BETA))
    assert (prediction.correction, prediction.hidden_share) == pytest.approx((1, hidden))
    assert prediction.step_seconds == pytest.approx(expected)
    assert prediction.images_per_second == pytest.approx(RANKS * 16 / expected)
    assert prediction.efficiency == pytest.approx(COMPUTE / expected)


def test_two_numbers_of_ranks_separate_the_overhead_from_the_latency() -> None:
    prediction = predict_measured([measurement(p, overhead=OVERHEAD) for p in (2, 4)], RANKS)
    assert (prediction.fit.overhead, prediction.fit.latency) == pytest.approx((OVERHEAD, ALPHA))
    assert prediction.step_seconds == pytest.approx(steps(OVERHEAD))
    assert prediction.upper_seconds == pytest.approx(steps(OVERHEAD))


def test_one_number_of_ranks_leaves_the_overhead_open_and_the_interval_covers_it() -> None:
    prediction, truth = predict_measured(measurement(2, overhead=OVERHEAD), RANKS), steps(OVERHEAD)
    assert prediction.step_seconds[1] == pytest.approx(truth[1])
    assert np.all(prediction.lower_seconds <= truth * (1 + 1e-9))
    assert np.all(prediction.upper_seconds >= truth * (1 - 1e-9))
    assert prediction.step_seconds[-1] > 2 * truth[-1]  # all of it taken as latency


def test_the_interval_contains_what_it_should_of_noisy_sweeps() -> None:
    random, inside, runs = np.random.default_rng(5), 0, 100
    for _ in range(runs):
        noisy = [exactly(spread.median * random.normal(1, 0.05)) for spread in measurement().all_reduces]
        alone = exactly(ring(2, TOTAL) * random.normal(1, 0.05))
        run = measurement(all_reduces=tuple(noisy), gradients_alone=alone, step=exactly(step(alone.median)))
        prediction = predict_measured(run, [3])
        inside += bool(prediction.lower_seconds[0] <= step(ring(3, TOTAL)) <= prediction.upper_seconds[0])
    assert inside / runs > 0.9


@pytest.mark.parametrize(("cores", "expected"), [(2, [1, 1.5, 4]), (8, [1, 1, 1])])
def test_hosts_that_share_cores_take_turns(cores: int, expected: list[float]) -> None:
    prediction = predict_measured(measurement(machines=1, cores=cores), [2, 3, 8])
    assert prediction.compute_seconds == pytest.approx(COMPUTE * np.array(expected))
    assert prediction.devices == pytest.approx([cores] * 3)


@pytest.mark.parametrize(("fusion_bytes", "all_reduces"), [(2_000_000, 1), (1_999_999, 2)])
def test_gradients_beyond_the_fusion_threshold_take_more_all_reduces(fusion_bytes: int, all_reduces: int) -> None:
    prediction = predict_measured(measurement(fusion_bytes=fusion_bytes), [2])
    expected = 2 * all_reduces * ALPHA + TOTAL * BETA
    assert prediction.communication_seconds / prediction.correction == pytest.approx([expected])


@pytest.mark.parametrize(
    ("communication", "nccl", "algorithm"),
    [
        ("Horovod over Gloo", {}, "ring"),
        ("Horovod over MPI", {}, "halving_doubling"),
        ("Horovod over MPI", {"nccl": "23203"}, "ring"),
    ],
)
def test_the_algorithm_is_that_of_the_library(communication: str, nccl: dict[str, str], algorithm: str) -> None:
    run = measurement(communication=communication, versions={"python": "3"} | nccl)
    prediction = predict_measured(run, [3, 4])
    expected = prediction.correction * prediction.fit.seconds(all_reduce(algorithm, [3, 4], TOTAL))
    assert prediction.communication_seconds == pytest.approx(expected)


def test_one_host_says_nothing_of_a_network() -> None:
    one_host = replace(measurement(2), ranks_per_host=(2,), machines=1, cores=4)
    predict_measured(one_host, [1, 4])
    with pytest.raises(WrongMeasurement, match="ask for at most 4 ranks, or measure on two hosts"):
        predict_measured(one_host, [5])
