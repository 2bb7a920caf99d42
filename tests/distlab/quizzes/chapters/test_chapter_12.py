"""The answers of chapter 12 against the virtual pipeline, NumPy and arithmetic."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from distlab.model_parallel import pipelines
from tests.distlab.quizzes.expectations import Expected, assert_expected, names_of

CHAPTER = "12"


def waiting_share(stages: int, micro_batches: int, chunks: int = 1) -> float:
    """Of the simulated pipeline, not of the formula."""
    schedule = "gpipe" if chunks == 1 else "interleaved"
    return float(100 * pipelines.simulate(schedule, stages, micro_batches, chunks).bubble_fraction)


def kept(values: Mapping[str, Any]) -> float:
    """Count the forward passes that have no backward pass yet, along the order of the stage."""
    order = pipelines.orders(values["schedule"], values["stages"], values["micro_batches"])[values["stage"]]
    on_the_way = np.cumsum([1 if each.kind == pipelines.FORWARD else -1 for each in order])
    return float(on_the_way.max())


def gigabytes(values: Mapping[str, Any]) -> float:
    stage, n = values["stage"], values["ranks"]
    return float(values["billions"] * (2 / (n if stage == 3 else 1) + 2 / (n if stage >= 2 else 1) + 12 / n))


def seam(values: Mapping[str, Any]) -> float:
    """Convolve a line of random numbers whole and in two halves, and count where the outputs differ."""
    kernel, line = np.ones(values["kernel"]), np.random.default_rng(1).random(101)

    def convolved(part: np.ndarray) -> np.ndarray:
        for _ in range(values["layers"]):
            part = np.convolve(part, kernel, "same")
        return part

    halves = np.concatenate([convolved(line[:50]), convolved(line[50:])])
    return float(np.sum(np.abs(halves - convolved(line)) > 1e-9))


def split_output(values: Mapping[str, Any]) -> float:
    return float(sum(max(a, 0) * b for a, b in zip(values["first"], values["second"], strict=True)))


def first_split(values: Mapping[str, Any]) -> str:
    if 16 * values["billions"] < 80:
        return "Data parallelism alone"
    return "Tensor inside the servers, a pipeline between them, data with the rest"


EXPECTED: dict[str, Expected] = {
    "columns_then_rows": lambda v: v["batch"] * v["outputs" if v["split"] == "column, row" else "hidden"],
    "relu_of_the_parts": split_output,
    "bubble": lambda v: waiting_share(v["stages"], v["micro_batches"]),
    "more_micro_batches": lambda v: (
        (1 + (v["stages"] - 1) / v["micro_batches"]) / (1 + (v["stages"] - 1) / (v["times"] * v["micro_batches"]))
    ),
    "activations_of_a_stage": kept,
    "interleaved_bubble": lambda v: waiting_share(v["stages"], v["stages"] * v["times"], v["chunks"]),
    "width_of_the_seam": seam,
    "sharded_states": gigabytes,
    "bytes_of_zero": lambda v: (3 if v["stage"] == 3 else 2) * v["gigabytes"] * (1 - 1 / v["ranks"]),
    "which_split": first_split,
}


@pytest.mark.parametrize("name", EXPECTED)
def test_the_answer_is_the_independent_one(name: str) -> None:
    assert_expected(CHAPTER, name, EXPECTED[name])


def test_every_template_is_compared() -> None:
    assert set(EXPECTED) == names_of(CHAPTER)
