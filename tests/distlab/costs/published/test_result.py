"""A published result from the speeds of few and of many GPUs."""

import pytest

from distlab.costs.published.result import one_to_many


def test_efficiency_and_speed_are_per_gpu() -> None:
    """4 GPUs with 400 images/s are 100 each; 16 with 1200 are 75 each."""
    result = one_to_many("resnet50", "abci", (4, 400), (16, 1200), 32, "nobody", program="none", blind_test=2)
    assert result.efficiency == pytest.approx(0.75)
    assert (result.baseline_ranks, result.ranks) == (4, 16)
    assert result.speed
    assert (result.speed.images_per_second, result.speed.batch) == (100, 32)
    assert (result.program, result.blind_test) == ("none", 2)
