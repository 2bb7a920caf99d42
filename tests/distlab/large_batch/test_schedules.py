"""Learning rates for large batches against the formulas of Goyal et al., arXiv:1706.02677, section 2.2."""

import math

import numpy as np
import pytest

from distlab.large_batch import schedules
from distlab.runtime.lookups import NoSuchName

RATE, TIMES, EPOCHS, STEPS_PER_EPOCH = 0.1, 32, 5, 40


def in_steps_of_equal_size(step: int) -> float:
    """The paper in words: from η to kη by a constant amount in each iteration, the warm-up over after 5 epochs."""
    amount = (RATE * TIMES - RATE) / (EPOCHS * STEPS_PER_EPOCH)
    rate = RATE
    for _ in range(min(step, EPOCHS * STEPS_PER_EPOCH)):
        rate += amount
    return rate


def follows_the_paper(schedule: schedules.Schedule) -> bool:
    steps = range(0, 8 * STEPS_PER_EPOCH, 7)
    return all(math.isclose(schedule(step / STEPS_PER_EPOCH), in_steps_of_equal_size(step)) for step in steps)


def test_gradual_warm_up_adds_the_same_amount_in_every_step() -> None:
    assert follows_the_paper(schedules.gradual_warm_up(RATE, RATE * TIMES, EPOCHS))
    assert follows_the_paper(schedules.by_name("gradual", RATE, TIMES, EPOCHS))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda epoch: RATE * TIMES * min(epoch / EPOCHS, 1),  # begins at 0
        lambda epoch: RATE * TIMES ** min(epoch / EPOCHS, 1),  # grows by a factor
        lambda epoch: RATE + RATE * (TIMES - 1) * min(int(epoch) / EPOCHS, 1),  # once an epoch
        lambda epoch: RATE * (1 + (TIMES - 1) * epoch / EPOCHS),  # never ends
        schedules.constant_warm_up(RATE, RATE * TIMES, EPOCHS),
        schedules.without_warm_up(RATE * TIMES),
    ],
)
def test_another_schedule_is_not_taken_for_gradual_warm_up(wrong: schedules.Schedule) -> None:
    assert not follows_the_paper(wrong)


def test_gradual_warm_up_is_that_of_horovod_s_callback() -> None:
    """Its documentation: lr = initial · (epoch · (size - 1) / warm-up + 1) / size, with the scaled rate as initial."""
    ranks, scaled = 8, 0.08
    schedule = schedules.gradual_warm_up(scaled / ranks, scaled, 3)
    for epoch in np.linspace(0, 3, 13):
        assert schedule(epoch) == pytest.approx(scaled / ranks * (epoch * (ranks - 1) / 3 + 1))


def test_constant_warm_up_jumps() -> None:
    schedule = schedules.constant_warm_up(0.1, 3.2, 5)
    assert [schedule(epoch) for epoch in (0, 4.999, 5, 90)] == [0.1, 0.1, 3.2, 3.2]


def test_the_names_give_the_rules() -> None:
    at_start = {name: schedules.by_name(name, 0.01, 9, 3)(0) for name in schedules.NAMES}
    assert at_start == pytest.approx(
        {"base": 0.01, "none": 0.09, "constant": 0.01, "gradual": 0.01, "square root": 0.03}
    )
    at_end = {name: schedules.by_name(name, 0.01, 9, 3)(3) for name in schedules.NAMES}
    assert at_end == pytest.approx({"base": 0.01, "none": 0.09, "constant": 0.09, "gradual": 0.09, "square root": 0.03})


def test_a_warm_up_of_no_epochs_is_none() -> None:
    assert schedules.gradual_warm_up(0.1, 0.8, 0)(0) == 0.8


def test_an_unknown_name_is_answered_with_those_that_there_are() -> None:
    with pytest.raises(NoSuchName, match="no schedule 'cosine'; there are base, none, constant, gradual, square root"):
        schedules.by_name("cosine", 0.1, 8, 3)
