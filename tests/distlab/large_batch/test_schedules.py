"""Learning rates for large batches against the formulas of Goyal et al., arXiv:1706.02677, section 2.2."""

import math

import numpy as np
import pytest

from distlab.large_batch import schedules

RATE, TIMES, EPOCHS, STEPS_PER_EPOCH = 0.1, 32, 5, 40


def in_steps_of_equal_size(step: int) -> float:
    """The paper in words: from η to kη by a constant amount in each iteration, the warm-up over after 5 epochs."""
    amount = (RATE * TIMES - RATE) / (EPOCHS * STEPS_PER_EPOCH)
    rate = RATE
    for _ in range(min(step, EPOCHS * STEPS_PER_EPOCH)):
        rate += amount
    return rate


def test_gradual_warm_up_adds_the_same_amount_in_every_step() -> None:
    named = schedules.by_name("gradual", RATE, TIMES, EPOCHS)
    for schedule in (schedules.gradual_warm_up(RATE, RATE * TIMES, EPOCHS), named):
        for step in range(0, 8 * STEPS_PER_EPOCH, 7):
            assert math.isclose(schedule(step / STEPS_PER_EPOCH), in_steps_of_equal_size(step))


def test_gradual_warm_up_is_that_of_horovod_s_callback() -> None:
    """Its documentation: lr = initial · (epoch · (size - 1) / warm-up + 1) / size, with the scaled rate as initial."""
    ranks, scaled = 8, 0.08
    schedule = schedules.gradual_warm_up(scaled / ranks, scaled, 3)
    for epoch in np.linspace(0, 3, 13):
        assert schedule(epoch) == pytest.approx(scaled / ranks * (epoch * (ranks - 1) / 3 + 1))


def test_the_names_give_the_rules() -> None:
    at_start = {name: schedules.by_name(name, 0.01, 9, 3)(0) for name in schedules.NAMES}
    assert at_start == pytest.approx(
        {"base": 0.01, "none": 0.09, "constant": 0.01, "gradual": 0.01, "square root": 0.03}
    )
    at_end = {name: schedules.by_name(name, 0.01, 9, 3)(3) for name in schedules.NAMES}
    assert at_end == pytest.approx({"base": 0.01, "none": 0.09, "constant": 0.09, "gradual": 0.09, "square root": 0.03})
