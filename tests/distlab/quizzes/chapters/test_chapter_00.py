"""The answers of chapter 00 against arithmetic."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import pytest

from tests.distlab.quizzes.expectations import Expected, assert_expected, names_of

CHAPTER = "00"


ORDER = ["NV4", "PIX", "PXB", "PHB", "NODE", "SYS"]


def nearest(values: Mapping[str, Any]) -> str:
    pairs = dict(zip(values["entries"], ("GPU 0 and GPU 1", "GPU 0 and GPU 2", "GPU 1 and GPU 2"), strict=True))
    return pairs[next(entry for entry in ORDER if entry in pairs)]


def mean_of_all_images(values: Mapping[str, Any]) -> float:
    gradients = [
        Fraction(mean) for count, mean in zip(values["counts"], values["means"], strict=True) for _ in range(count)
    ]
    return float(sum(gradients) / len(gradients))


def verdict(values: Mapping[str, Any]) -> str:
    if values["difference"] < 1e-5:
        return "Nothing is wrong: the additions have another order."
    return "Something is wrong, such as a part that is missing or counted twice."


EXPECTED: dict[str, Expected] = {
    "changed_parameter": lambda v: v["before"],
    "two_links": lambda v: v["gigabytes"] * 8 / v["gigabits"],
    "nearest_gpus": nearest,
    "gradient_over_ethernet": lambda v: v["millions"] * 32 / v["gigabits"],
    "logical_devices": lambda v: v["rate"],
    "sum_of_gradients": mean_of_all_images,
    "rounding_or_mistake": verdict,
    "divided_by_the_own_part": lambda v: v["rate"] * v["workers"],
    "what_reveals_it": lambda v: "The weights after some steps of SGD, compared with one device",
    "sum_of_processes": lambda v: v["times"] * v["processes"] * (v["processes"] + 1) / 2,
}


@pytest.mark.parametrize("name", EXPECTED)
def test_the_answer_is_the_independent_one(name: str) -> None:
    assert_expected(CHAPTER, name, EXPECTED[name])


def test_every_template_is_compared() -> None:
    assert set(EXPECTED) == names_of(CHAPTER)
