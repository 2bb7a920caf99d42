"""The answers of chapter 01 against closed formulas, a loop of old gradients and a queue of workers."""

import heapq
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from tests.distlab.quizzes.expectations import Expected, assert_expected, names_of

CHAPTER = "01"


def updates(values: Mapping[str, Any]) -> float:
    """Count the updates of 60 seconds, one after another."""
    seconds = [1] * (values["workers"] - 1) + [values["slow"]]
    if values["method"] == "synchronous":
        return float(sum(1 for moment in range(max(seconds), 61, max(seconds)) if moment <= 60))
    ready, count = [(each, each) for each in seconds], 0
    heapq.heapify(ready)
    while ready[0][0] <= 60:
        moment, each = heapq.heappop(ready)
        count += 1
        heapq.heappush(ready, (moment + each, each))
    return float(count)


def fits(values: Mapping[str, Any]) -> str:
    return (
        "Each device has room for the state."
        if 16 * values["billions"] <= 80
        else "It fails on each device, as on one."
    )


def shards(values: Mapping[str, Any]) -> dict[str, bool]:
    images = np.repeat(values["means"], (values["first"], 64 - values["first"]))
    return {f"The gradient of the batch is {images.mean():g}.": True, "32 + 32": True, "order of the additions": False}


def law(values: Mapping[str, Any]) -> float:
    f, p = values["percent"] / 100, values["devices"]
    return float(1 / (1 - f + f / p) if values["kept"] == "global" else 1 - f + f * p)


def utilisation(values: Mapping[str, Any]) -> float:
    peak = values["devices"] * 312e12
    tokens = round(values["percent"] / 100 * peak / (6e9 * values["billions"]), -2)
    return float(100 * 6e9 * values["billions"] * tokens / peak)


def promised(values: Mapping[str, Any]) -> float:
    """Solve 1/S = u + (1 - u)/2 for u."""
    undivided = 2 / values["speedup"] - 1
    return float(1 / (undivided + (1 - undivided) / values["devices"]))


EXPECTED: dict[str, Expected] = {
    "training_state": lambda v: 16 * v["billions"],
    "devices_for_the_state": lambda v: math.ceil(16 * v["billions"] / v["gigabytes"]),
    "plain_data_parallelism": fits,
    "days_of_training": lambda v: 6e18 * v["billions"] * v["tokens"] / (v["devices"] * 124.8e12 * 86_400),
    "utilisation_of_flops": utilisation,
    "uneven_shards": shards,
    "largest_rate_with_staleness": lambda v: 2 * math.sin(math.pi / (4 * v["staleness"] + 2)),
    "updates_with_a_straggler": updates,
    "two_laws": law,
    "from_two_to_many": promised,
}


@pytest.mark.parametrize("staleness", [1, 3, 7])
def test_old_gradients_converge_just_below_the_limit_and_not_just_above(staleness: int) -> None:
    limit = EXPECTED["largest_rate_with_staleness"]({"staleness": staleness})
    assert isinstance(limit, float)
    for factor, converges in ((0.95, True), (1.05, False)):
        weights = [1.0] * (staleness + 1)
        for _ in range(3_000):
            weights.append(max(-1e6, min(1e6, weights[-1] - factor * limit * weights[-1 - staleness])))
        assert (abs(weights[-1]) < 1e-3) == converges


@pytest.mark.parametrize("name", EXPECTED)
def test_the_answer_is_the_independent_one(name: str) -> None:
    assert_expected(CHAPTER, name, EXPECTED[name])


def test_every_template_is_compared() -> None:
    assert set(EXPECTED) == names_of(CHAPTER)
