"""Learning rates for large batches against the formulas of Goyal et al., arXiv:1706.02677, section 2.2."""

import numpy as np
import pytest

from distlab.large_batch import schedules


def test_gradual_warm_up_is_that_of_horovod_s_callback() -> None:
    """Its documentation: lr = initial · (epoch · (size - 1) / warm-up + 1) / size, with the scaled rate as initial."""
    ranks, scaled = 8, 0.08
    named = schedules.by_name("gradual", scaled / ranks, ranks, 3)
    for schedule in (schedules.gradual_warm_up(scaled / ranks, scaled, 3), named):
        for epoch in np.linspace(0, 3, 13):
            assert schedule(epoch) == pytest.approx(scaled / ranks * (epoch * (ranks - 1) / 3 + 1))
        assert schedule(5) == pytest.approx(scaled)


def test_the_names_give_the_rules() -> None:
    at_start = {name: schedules.by_name(name, 0.01, 9, 3)(0) for name in schedules.NAMES}
    assert at_start == pytest.approx(
        {"base": 0.01, "none": 0.09, "constant": 0.01, "gradual": 0.01, "square root": 0.03}
    )
    at_end = {name: schedules.by_name(name, 0.01, 9, 3)(3) for name in schedules.NAMES}
    assert at_end == pytest.approx({"base": 0.01, "none": 0.09, "constant": 0.09, "gradual": 0.09, "square root": 0.03})
