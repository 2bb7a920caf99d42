"""The answers of chapter 09 against NumPy, counting and arithmetic."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from tests.distlab.quizzes.expectations import Expected, assert_expected, names_of

CHAPTER = "09"


def place(values: Mapping[str, Any]) -> str:
    slots = [(host, gpu) for host in range(values["hosts"]) for gpu in range(values["gpus"])]
    host, gpu = slots[values["rank"]]
    return f"GPU {gpu} of host {host}"


def seen(values: Mapping[str, Any]) -> float:
    return float(100 * (1 - np.prod([1 - 1 / values["ranks"]] * values["ranks"])))


def buffers(values: Mapping[str, Any]) -> float:
    """Pack gradient by gradient."""
    count, used = 1, 0
    for _ in range(values["count"]):
        if used and used + values["kilobytes"] > values["threshold"]:
            count, used = count + 1, 0
        used += values["kilobytes"]
    return float(count)


def in_16_bits(values: Mapping[str, Any]) -> str:
    return "Infinity" if values["value"] * values["ranks"] > 65_504 else f"{values['value']:,}, up to rounding"


def adasum(values: Mapping[str, Any]) -> float:
    """By the cosine rule: both vectors get the factor 1 - cos/2."""
    cosine = np.cos(np.radians(values["degrees"]))
    return float(values["length"] * (1 - cosine / 2) * np.sqrt(2 + 2 * cosine))


EXPECTED: dict[str, Expected] = {
    "local_rank": place,
    "average_over_ranks": lambda v: v["start"] + (v["ranks"] - 1) / 2,
    "scaled_rate": lambda v: v["rate"] * v["hosts"] * v["gpus"],
    "steps_of_a_rank": lambda v: v["samples"] / 32 / v["ranks"],
    "sampled_from_everything": seen,
    "forgotten_step": lambda v: v["step"].capitalize(),
    "fused_all_reduces": buffers,
    "overflow_in_fp16": in_16_bits,
    "accumulated_gradients": lambda v: v["batches"] / v["passes"] * v["megabytes"],
    "length_by_adasum": adasum,
}


@pytest.mark.parametrize("name", EXPECTED)
def test_the_answer_is_the_independent_one(name: str) -> None:
    assert_expected(CHAPTER, name, EXPECTED[name])


def test_every_template_is_compared() -> None:
    assert set(EXPECTED) == names_of(CHAPTER)
