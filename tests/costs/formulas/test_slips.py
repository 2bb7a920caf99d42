"""What cannot be a cost or a measurement is one sentence."""

from collections.abc import Callable
from typing import Any

import pytest

from distlab import costs

RING = costs.all_reduce("ring", 4, 1e6)
SIZES, SECONDS = [1e3, 1e4], [1e-3, 2e-3]


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
