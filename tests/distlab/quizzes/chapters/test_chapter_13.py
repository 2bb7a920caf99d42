"""The answers of chapter 13 against a search for the least cost, counting and arithmetic."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from tests.distlab.quizzes.expectations import Expected, assert_expected, names_of

CHAPTER = "13"


def cheapest_interval(values: Mapping[str, Any]) -> float:
    """Try intervals and take the one that loses least."""
    minutes = np.arange(0.01, 400, 0.0001)
    lost = values["seconds"] / 60 / minutes + minutes / 2 / (60 * values["hours"])
    return float(minutes[np.argmin(lost)])


def damaged(values: Mapping[str, Any]) -> str:
    if "whole" in values["way"]:
        return f"It continues after step {values['newest'] - values['every']}."
    if values["damage"] == "index is missing":
        return "It starts from step 0, without an exception."
    return "Restoring raises an error, and the job cannot start."


def elastic(values: Mapping[str, Any]) -> dict[str, bool]:
    committed = max(step for step in range(0, values["died"] + 1, values["every"]))
    share = values["batch"] // (values["ranks"] - 1)
    return {
        f"continue after step {committed}.": True,
        f"continue after step {values['died']}.": False,
        f"gets {share} samples": True,
        "learning rate": False,
        "commits survive": False,
    }


EXPECTED: dict[str, Expected] = {
    "faults_of_many_parts": lambda v: 8_760 * v["years"] / v["parts"],
    "save_interval": lambda v: float(np.sqrt(2 * v["seconds"] * v["hours"] * 3_600) / 60),
    "lost_time": lambda v: 100 * (v["seconds"] / 60 / v["minutes"] + v["minutes"] / (120 * v["hours"])),
    "repeated_steps": lambda v: v["killed"] % v["every"],
    "who_died_first": lambda v: f"Why worker {v['dead']} was killed: memory, or its machine",
    "find_the_straggler": lambda v: f"Rank {v['slow']}",
    "shares_by_speed": lambda v: v["images"] / (v["ranks"] - 1 + 1 / v["times"]),
    "damaged_checkpoint": damaged,
    "elastic_training": elastic,
    "save_after_a_notice": lambda v: v["step"] + 1,
}


@pytest.mark.parametrize(("seconds", "hours"), [(30, 3), (120, 12)])
def test_no_other_interval_loses_less(seconds: int, hours: int) -> None:
    values = {"seconds": seconds, "hours": hours}
    assert EXPECTED["save_interval"](values) == pytest.approx(cheapest_interval(values), rel=1e-3)


@pytest.mark.parametrize("name", EXPECTED)
def test_the_answer_is_the_independent_one(name: str) -> None:
    assert_expected(CHAPTER, name, EXPECTED[name])


def test_every_template_is_compared() -> None:
    assert set(EXPECTED) == names_of(CHAPTER)
