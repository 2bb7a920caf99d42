"""The parameter server on the virtual cluster: updates, weights and staleness."""

from functools import partial

import numpy as np
import pytest

from distlab.collectives import Training, parameter_server
from distlab.simulate import World


def trained_towards_zero(size: int) -> Training:
    program = partial(parameter_server, gradient=lambda weights, worker, step: weights, steps=6, learning_rate=0.1)
    return World(size).run(program, [np.ones(3)] * size).results[0]


def test_one_worker_is_never_stale_and_equals_serial_descent() -> None:
    training = trained_towards_zero(2)
    assert training.staleness == [0] * 6
    np.testing.assert_allclose(training.weights, 0.9**6)


@pytest.mark.parametrize("size", [3, 5, 9])
def test_equal_workers_are_as_stale_as_there_are_others(size: int) -> None:
    training, workers = trained_towards_zero(size), size - 1
    assert training.staleness == [*range(workers), *[workers - 1] * (5 * workers)]
    assert [update.worker for update in training.updates] == [*range(1, size)] * 6


def test_staleness_is_what_the_weights_lacked() -> None:
    seen = {}

    def gradient(weights: np.ndarray, worker: int, step: int) -> np.ndarray:
        seen[worker, step] = -10 * weights[0]
        return np.full(1, -10.0)

    # With a rate of 0.1 every update adds 1, so the weights count the updates.
    program = partial(parameter_server, gradient=gradient, steps=4)
    training = World(4, compute_speeds={2: 0.4}).run(program, [np.zeros(1)] * 4).results[0]
    steps_done = dict.fromkeys((1, 2, 3), 0)
    for applied, update in enumerate(training.updates):
        weights_had = -seen[update.worker, steps_done[update.worker]] / 10
        assert applied - weights_had == pytest.approx(update.staleness)
        steps_done[update.worker] += 1
