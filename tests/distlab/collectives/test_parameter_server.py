"""The parameter server on the virtual cluster: updates, weights and staleness."""

from functools import partial

import numpy as np
import pytest

from distlab.collectives import parameter_server
from distlab.simulate import World


@pytest.mark.parametrize("workers", [1, 2, 4, 8])
def test_equal_workers_are_as_stale_as_there_are_others_and_one_equals_serial_descent(workers: int) -> None:
    program = partial(parameter_server, gradient=lambda weights, worker, step: weights, steps=6, learning_rate=0.1)
    training = World(workers + 1).run(program, [np.ones(3)] * (workers + 1)).results[0]
    assert training.staleness == [*range(workers), *[workers - 1] * (5 * workers)]
    assert [update.worker for update in training.updates] == [*range(1, workers + 1)] * 6
    if workers == 1:
        np.testing.assert_allclose(training.weights, 0.9**6)


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
