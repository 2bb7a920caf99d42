"""The four numbers, and their panel."""

import pytest

from distlab.large_batch import FourNumbers, FourNumbersPanel
from distlab.large_batch.four_numbers import KEPT


def test_weak_scaling_changes_three_of_the_four_and_strong_scaling_the_per_replica_batch_alone() -> None:
    weak, strong = FourNumbers(60_000, 8, 100, 0.01, 100), FourNumbers.of_global_batch(60_000, 4, 100, 0.01, 100)
    assert (weak.per_replica_batch, weak.global_batch, weak.steps_per_epoch) == (100, 800, 75)
    assert (strong.per_replica_batch, strong.global_batch, strong.steps_per_epoch) == (25, 100, 600)
    assert (weak.learning_rate, strong.learning_rate) == pytest.approx((0.08, 0.01))


@pytest.mark.parametrize(("rule", "rate"), [("linear", 0.16), ("square root", 0.04), ("unchanged", 0.01)])
def test_the_rules_use_the_ratio_of_the_global_batches(rule: str, rate: float) -> None:
    for replicas, batch in ((4, 400), (16, 100)):
        assert FourNumbers(60_000, replicas, batch, 0.01, 100, rule).learning_rate == pytest.approx(rate)


def test_the_panel_follows_its_controls_and_says_what_does_not_fit() -> None:
    panel = FourNumbersPanel(60_000, known_rate=0.01, known_batch=100)
    assert "<td>800</td>" in panel.numbers.value and "<td>0.08</td>" in panel.numbers.value
    panel.rule.value = "square root"
    assert "<td>0.02828</td>" in panel.numbers.value
    panel.kept.value = KEPT["the global batch (strong scaling)"]
    panel.replicas.value = 4
    assert "<td>25</td>" in panel.numbers.value and "<td>600</td>" in panel.numbers.value
    panel.replicas.value = 16
    assert "100 cannot be divided evenly among 16" in panel.numbers.value
