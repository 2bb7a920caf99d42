"""Logarithms and the checks that every formula begins with."""

import re

import numpy as np
import pytest
from numpy.typing import ArrayLike

from distlab.costs.formulas.collectives import all_reduce
from distlab.costs.formulas.cost import ceil_log2, checked, floor_log2


def test_logarithms_are_exact_next_to_powers_of_two() -> None:
    powers = 2.0 ** np.arange(1, 50)
    np.testing.assert_array_equal(floor_log2(powers), np.arange(1, 50))
    np.testing.assert_array_equal(floor_log2(powers - 1), np.arange(0, 49))
    np.testing.assert_array_equal(ceil_log2(powers), np.arange(1, 50))
    np.testing.assert_array_equal(ceil_log2(powers + 1), np.arange(2, 51))
    assert ceil_log2(1) == floor_log2(1) == 0


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match=r"\(2,\).*\(3,\) do not fit"):
        checked([1, 2], [1, 2, 3])


@pytest.mark.parametrize("network", [(-1e-6, 1e-9), (np.nan, 1e-9), (1e-6, np.inf), (1e-6, 1e-9, -1.0)])
def test_a_network_that_cannot_be_has_no_time(network: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match=r"is finite and at least 0, not (-|nan|inf)"):
        all_reduce("ring", 4, 100).seconds(*network)


@pytest.mark.parametrize(
    ("ranks", "array_bytes", "text"),
    [("1..8", 1.0, "'1..8' is no number of ranks"), (4, "100MB", "'100MB' is no number of bytes")],
)
def test_texts_are_refused_with_what_to_give(ranks: ArrayLike, array_bytes: ArrayLike, text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"{text}; give a number or a list of numbers")):
        checked(ranks, array_bytes)
