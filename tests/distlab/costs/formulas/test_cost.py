"""Logarithms and the checks that every formula begins with."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike

from distlab import costs
from distlab.costs.formulas.collectives import all_reduce
from distlab.costs.formulas.cost import ceil_log2, checked, floor_log2

RING = costs.all_reduce("ring", 4, 1e6)
SIZES, SECONDS = [1e3, 1e4], [1e-3, 2e-3]


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


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda cost: cost.seconds(5e-6, 1e9), r"the time of a byte is 1e\+09, which is no time: .* give 1e-9"),
        (lambda cost: cost.seconds("5e-6", 1e-9), "the latency is the text '5e-6'; give a number of seconds"),
        (lambda cost: cost.seconds(None, 1e-9), "the latency is None"),
        (lambda cost: costs.fit(SIZES, SECONDS, "ring"), "what was measured is the text 'ring'; give a Cost"),
        (lambda cost: costs.fit(SIZES, SECONDS, lambda sizes: None), "what was measured is None"),
        (lambda cost: costs.fit(SIZES, SECONDS, cost.seconds(0, 1)), "what was measured is .*; give a Cost, or a func"),
        (lambda cost: costs.fit(SIZES, SECONDS).seconds(4), "cost is 4; give a cost, such as costs.all_reduce"),
        (lambda cost: costs.fit_amdahl([1, 2], ["a", "b"]), r"\['a', 'b'\] is no number of seconds"),
        (lambda cost: costs.serial_share([2, 3, 4], [4, 5]), r"ranks of shape \(2,\) and speed-ups of shape \(3,\)"),
        (lambda cost: costs.algorithm_bandwidth(SIZES, [1, 2, 3]), "do not fit together"),
        (lambda cost: costs.predict_split("gpt-146b", "selene", 64, (8, 8)), "split is of the type tuple; give a cost"),
    ],
)
def test_what_is_no_cost_or_time_is_one_sentence(call: Callable[[Any], object], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        call(RING)
