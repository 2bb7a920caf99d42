"""Lab 10: other right answers, and the estimate of many steps against what the gradients were made with."""

import numpy as np
import pytest
from lab_10 import judge
from lab_10.judge import ESTIMATES, LAB, NUMBERS

from tests.distlab.labs.known_wrong import right_answers, verdict_on


def by_trying(images, hosts, ranks_per_host, known_batch, known_rate, fits, worthwhile):
    ranks = len([(host, rank) for host in range(hosts) for rank in range(ranks_per_host)])
    per_replica = max(batch for batch in range(1, fits + 1) if batch * ranks <= worthwhile)
    steps = 0
    while (steps + 1) * ranks * per_replica <= images:
        steps += 1
    values = (ranks * per_replica / known_batch) * known_rate, steps, per_replica * ranks, np.int64(per_replica)
    return dict(zip(NUMBERS[::-1], values, strict=True))


def by_interpolation(step, count, epochs, first, full):
    return np.interp(step, [0, count * epochs], [first, full]) if epochs else np.float64(full)


def by_variances(gradients, batch):
    variance = batch * np.var(gradients, axis=1, ddof=1).sum(axis=1).mean()
    norms = np.linalg.norm(gradients.mean(axis=1), axis=1)
    squared = norms @ norms / len(gradients) - variance / batch / gradients.shape[1]
    values = squared, variance, variance / squared if squared > 0 else np.inf
    return dict(zip(ESTIMATES, values, strict=True))


test_another_right_answer_gets_full_marks = right_answers(
    LAB, ("plan", by_trying), ("warm_up", by_interpolation), ("noise_scale", by_variances)
)


def test_the_estimate_of_many_steps_is_the_scale_that_the_gradients_were_made_with():
    generator, batch, ranks, parameters = np.random.default_rng(5), 16, 8, 30
    noise = generator.normal(size=(2000, ranks, parameters)) * np.sqrt(900 / parameters / batch)
    squared, variance, scale = judge.noise_scale(np.ones(parameters) + noise, batch).values()
    assert squared == pytest.approx(30, rel=0.03) and variance == pytest.approx(900, rel=0.03)
    assert scale == pytest.approx(30, rel=0.05)


def test_the_picture_marks_the_first_wrong_step():
    picture = verdict_on(LAB, "warm_up", {"warm_up": lambda *case: case[-1]}).picture()
    assert picture.description.endswith("wrong first in step 0.")
