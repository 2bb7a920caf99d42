"""The answers of chapter 10 against closed formulas, NumPy and a solved pair of equations."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from tests.distlab.quizzes.expectations import Expected, assert_expected, names_of

CHAPTER = "10"


def noise_scale(values: Mapping[str, Any]) -> float:
    """Solve |G|² + tr Σ / B for the two batch sizes."""
    sizes = np.array([values["batch"], values["batch"] * values["ranks"]])
    squares = values["signal"] + values["variance"] / sizes
    signal, variance = np.linalg.solve(np.stack([np.ones(2), 1 / sizes], axis=1), squares)
    return float(variance / signal)


def variance_of_all(values: Mapping[str, Any]) -> float:
    """The variance of two halves that are made to have these means and variances."""
    halves = [
        mean + math.sqrt(variance) * np.array([-1.0, 1.0])
        for mean, variance in zip((values["first"], values["second"]), values["variances"], strict=True)
    ]
    return float(np.var(np.concatenate(halves)))


def saved(values: Mapping[str, Any]) -> float:
    critical, batch, times = values["critical"], values["batch"], values["times"]
    return float((1 + critical / batch) / (1 + critical / (times * batch)))


EXPECTED: dict[str, Expected] = {
    "weak_scaling_rate": lambda v: v["rate"] * v["replicas"],
    "steps_per_epoch": lambda v: v["images"] // (v["replicas"] * v["batch"]),
    "strong_scaling_rate": lambda v: v["rate"] * v["times"],
    "steps_saved": saved,
    "images_needed": lambda v: 1 + v["ratio"],
    "two_rules": lambda v: math.sqrt(v["times"]),
    "stuck_at_chance": lambda v: "Restart from new weights, with warm-up or a smaller rate",
    "warm_up_rate": lambda v: v["rate"] * (1 + v["share"] * (v["times"] - 1)),
    "synchronised_variance": variance_of_all,
    "noise_scale_of_ranks": noise_scale,
}


@pytest.mark.parametrize("name", EXPECTED)
def test_the_answer_is_the_independent_one(name: str) -> None:
    assert_expected(CHAPTER, name, EXPECTED[name])


def test_every_template_is_compared() -> None:
    assert set(EXPECTED) == names_of(CHAPTER)
