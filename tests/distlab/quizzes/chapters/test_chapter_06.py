"""The answers of chapter 06 against closed formulas and NumPy."""

from collections.abc import Mapping
from math import ceil, log2
from typing import Any

import numpy as np
import pytest

from tests.distlab.quizzes.expectations import Expected, assert_expected, names_of

CHAPTER = "06"


def after_the_collective(values: Mapping[str, Any]) -> str:
    rows, rank = np.array([values[f"row {index}"] for index in range(3)]), values["rank"]
    after = {"all_reduce": rows.sum(axis=0), "reduce_scatter": rows.sum(axis=0)[rank : rank + 1]}
    after["all_to_all"] = rows[:, rank]
    return str(after[values["collective"]].tolist())


def fastest(values: Mapping[str, Any]) -> str:
    p, n = values["ranks"], 1e3 * values["kilobytes"]
    q = 2 ** int(log2(p))
    extra = 2 * (p > q)
    seconds = {
        "naive": 2 * (p - 1) * (5e-6 + n * 1e-9),
        "tree": 2 * ceil(log2(p)) * (5e-6 + n * 1e-9),
        "ring": 2 * (p - 1) * 5e-6 + 2 * (p - 1) / p * n * 1e-9,
        "halving-doubling": (2 * log2(q) + extra) * 5e-6 + (2 * (q - 1) / q + extra) * n * 1e-9,
    }
    return min(seconds, key=lambda name: seconds[name])


def saved_by_fusion(values: Mapping[str, Any]) -> float:
    return float(1e3 * (values["count"] - 1) * 2 * (values["ranks"] - 1) * values["microseconds"] * 1e-6)


EXPECTED: dict[str, Expected] = {
    "latency_share": lambda v: 100 * v["microseconds"] / (v["microseconds"] + v["kilobytes"] / v["gigabytes"]),
    "what_a_rank_has": after_the_collective,
    "ring_statements": lambda v: {f"It has {2 * v['ranks'] - 2} steps": True, f"It has {v['ranks']} steps": False},
    "ring_bytes": lambda v: 2 * v["megabytes"] * (1 - 1 / v["ranks"]),
    "twice_the_ranks": lambda v: (1 - 1 / (2 * v["ranks"])) / (1 - 1 / v["ranks"]),
    "blocking_ring": lambda v: f"For rank {(v['rank'] + 1) % v['ranks']}",
    "fastest_all_reduce": fastest,
    "slow_link": lambda v: v["factor"],
    "straggler": lambda v: v["milliseconds"] * (100 / v["percent"] - 1),
    "fused_gradients": saved_by_fusion,
}


@pytest.mark.parametrize("name", EXPECTED)
def test_the_answer_is_the_independent_one(name: str) -> None:
    assert_expected(CHAPTER, name, EXPECTED[name])


def test_every_template_is_compared() -> None:
    assert set(EXPECTED) == names_of(CHAPTER)
