"""The answers of chapter 02 against counting and arithmetic."""

from collections.abc import Mapping
from math import ceil, log
from typing import Any

import pytest

from tests.distlab.quizzes.expectations import Expected, assert_expected, names_of

CHAPTER = "02"


def decoded(values: Mapping[str, Any]) -> float:
    """Count the calls of a pipeline that is run epoch by epoch."""
    calls, is_cached = 0, False
    for _ in range(values["epochs"]):
        if values["line"].startswith("cache") or not is_cached:
            calls += values["images"]
        is_cached = True
    return float(calls)


def batches(values: Mapping[str, Any]) -> float:
    """Fill the batches number by number."""
    count, filled = 0, 0
    for epoch in range(2):
        for place in range(values["images"]):
            filled += 1
            last = place == values["images"] - 1 and (values["order"] == "batch, repeat" or epoch == 1)
            if filled == values["batch"] or last:
                count, filled = count + 1, 0
    return float(count)


def cache(values: Mapping[str, Any]) -> str:
    fits = values["decoded"] < values["memory"]
    return f"decode, cache in {'memory' if fits else 'a file'}, random crop"


FAULTS = {
    "logits as probabilities": "The loss takes logits for probabilities",
    "softmax twice": "A softmax is applied twice",
}

EXPECTED: dict[str, Expected] = {
    "speedup_of_two_clocks": lambda v: v["elapsed"][0] / v["elapsed"][1],
    "cpu_time_of_threads": lambda v: v["seconds"] / (v["threads"] if "perf_counter" in v["clock"] else 1),
    "decoded_images": decoded,
    "prefetch": lambda v: v["prepare"] if v["prepare"] > v["compute"] else v["compute"],
    "batches_of_two_epochs": batches,
    "place_of_the_cache": cache,
    "throughput_of_a_batch": lambda v: 1e6 / (v["fixed"] / v["batch"] + v["per_image"]),
    "updates_of_an_epoch": lambda v: ceil(v["images"] / v["batch"]),
    "first_loss": lambda v: -log(1 / v["classes"]),
    "diagnose_the_loss": lambda v: FAULTS[v["fault"]],
}


@pytest.mark.parametrize("name", EXPECTED)
def test_the_answer_is_the_independent_one(name: str) -> None:
    assert_expected(CHAPTER, name, EXPECTED[name])


def test_every_template_is_compared() -> None:
    assert set(EXPECTED) == names_of(CHAPTER)
