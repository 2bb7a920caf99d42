"""The answers of chapter 04 against counting, NumPy and arithmetic."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from tests.distlab.quizzes.expectations import Expected, assert_expected, names_of

CHAPTER = "04"


def last_part(values: Mapping[str, Any]) -> float:
    """Hand out the images in portions, rounded up, until none is left."""
    left = values["rest"]
    portion = -(-left // values["replicas"])
    for _ in range(values["replicas"]):
        part = min(portion, left)
        left -= part
    return float(part)


def divided(values: Mapping[str, Any]) -> float:
    return float(np.sum(values["losses"]) / (3 if "count" in values["divisor"] else values["usual"]))


def iou(values: Mapping[str, Any]) -> float:
    """Of two masks that are made to have these pixels."""
    both, predicted_only, true_only = values["both"], values["only_predicted"], values["only_true"]
    predicted, true = np.zeros(784, bool), np.zeros(784, bool)
    predicted[: both + predicted_only] = True
    true[:both] = True
    true[both + predicted_only : both + predicted_only + true_only] = True
    return float(np.sum(predicted & true) / np.sum(predicted | true))


def wrong_divisor(values: Mapping[str, Any]) -> dict[str, bool]:
    return {
        "The printed loss is right": True,
        f"The gradient is {values['replicas']} times": True,
        "The gradient is right": False,
        "Adam": False,
    }


EXPECTED: dict[str, Expected] = {
    "overlap_of_masks": iou,
    "traces_of_shapes": lambda v: 2,
    "traces_of_numbers": lambda v: 1 if v["kind"] == "a tensor" else v["epochs"],
    "reduced_loss": lambda v: float(np.sum(v["parts"])),
    "divisor_and_reduction": wrong_divisor,
    "learning_rate_that_nobody_chose": lambda v: v["rate"] * v["replicas"],
    "images_of_the_last_replica": last_part,
    "mean_of_the_last_batch": divided,
    "empty_part": lambda v: "`nan`" if "reduce_mean" in v["way"] else "The mean loss of the one image",
    "lines_of_the_log": lambda v: v["epochs"] + 1,
}


@pytest.mark.parametrize("name", EXPECTED)
def test_the_answer_is_the_independent_one(name: str) -> None:
    assert_expected(CHAPTER, name, EXPECTED[name])


def test_every_template_is_compared() -> None:
    assert set(EXPECTED) == names_of(CHAPTER)
