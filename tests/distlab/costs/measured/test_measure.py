"""What the ranks must agree on, and the sizes of the sweep."""

import itertools

import pytest

from distlab.costs.measured.measure import default_sizes, require_agreement
from distlab.costs.measured.measurement import WrongMeasurement


def test_ranks_that_agree_pass() -> None:
    require_agreement([{"model": "cnn", "tensorflow": "2.21.0"}] * 3)


@pytest.mark.parametrize(
    ("third", "sentence"),
    [
        ({"model": "mlp", "tensorflow": "2.21.0"}, "model is cnn on rank 0 and mlp on rank 2"),
        ({"model": "cnn", "tensorflow": "2.20.0"}, "tensorflow is 2.21.0 on rank 0 and 2.20.0 on rank 2"),
        ({"model": "cnn"}, "tensorflow is 2.21.0 on rank 0 and missing on rank 2"),
    ],
)
def test_ranks_that_disagree_are_named(third: dict[str, object], sentence: str) -> None:
    facts: list[dict[str, object]] = [{"model": "cnn", "tensorflow": "2.21.0"}] * 2
    with pytest.raises(WrongMeasurement, match=f"The ranks disagree: {sentence}; start all of them with the same"):
        require_agreement([*facts, third])


@pytest.mark.parametrize(("gradient_bytes", "last"), [(1, 1024), (1024, 1024), (1025, 4096), (1_388_584, 4 * 2**20)])
def test_the_sweep_reaches_the_gradients(gradient_bytes: int, last: int) -> None:
    sizes = default_sizes(gradient_bytes)
    assert sizes[0] == 1024 and sizes[-1] == last
    assert all(after == 4 * before for before, after in itertools.pairwise(sizes))
