"""The answers of chapter 03 against counting and arithmetic."""

from collections.abc import Mapping
from math import ceil
from typing import Any

import pytest

from tests.distlab.quizzes.expectations import Expected, assert_expected, names_of

CHAPTER = "03"


FAULTS = {"loss": "The loss does not fit the last layer", "shuffle": "The pipeline does not shuffle"}


def chosen_devices(values: Mapping[str, Any]) -> dict[str, bool]:
    return {
        f"has {values['chosen'] * values['batch']} images": True,
        f"{values['gpus'] - values['chosen']} GPUs stay idle": True,
        "copies": False,
    }


def dropout(values: Mapping[str, Any]) -> str:
    if values["dropout"]:
        return "Nothing yet: compare again without dropout"
    return "A mistake, such as a wrong batch size or a lost replica"


EXPECTED: dict[str, Expected] = {
    "replicas_of_a_list": chosen_devices,
    "literal_batch": lambda v: v["batch"] / v["replicas"],
    "diagnose_two_programs": lambda v: FAULTS[v["fault"]],
    "intended_steps": lambda v: ceil(v["images"] / v["batch"] / v["replicas"]),
    "weight_of_an_image": lambda v: 1 / len(v["parts"]) / v["parts"][v["place"]],
    "one_image_left": lambda v: v["rate"] / v["replicas"],
    "messages_of_device_0": lambda v: 2 * (v["devices"] - 1) * v["megabytes"],
    "odd_hierarchy": lambda v: v["times"] * (v["devices"] - 1) * v["devices"] / 2,
    "dropout_or_mistake": dropout,
    "as_fast_as_one": lambda v: f"The global batch size: each GPU gets {v['batch'] // v['gpus']} images",
}


@pytest.mark.parametrize("name", EXPECTED)
def test_the_answer_is_the_independent_one(name: str) -> None:
    assert_expected(CHAPTER, name, EXPECTED[name])


def test_every_template_is_compared() -> None:
    assert set(EXPECTED) == names_of(CHAPTER)
