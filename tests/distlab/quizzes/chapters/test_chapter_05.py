"""The answers of chapter 05 against Adam in NumPy, counting and arithmetic."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from tests.distlab.quizzes.expectations import Expected, assert_expected, names_of

CHAPTER = "05"


CALLS = {
    "be served": "`model.export(path)`",
    "be shared": '`model.save("model.keras")`',
    "resume in a custom loop": "`tf.train.CheckpointManager(…).save()`",
    "resume in `fit`": "the callback `BackupAndRestore`",
}


def call(values: Mapping[str, Any]) -> str:
    return next(text for purpose, text in CALLS.items() if values["purpose"].startswith(purpose))


def first_step_of_adam(values: Mapping[str, Any]) -> float:
    """Algorithm 1 of Kingma and Ba, for t = 1."""
    m = v = np.zeros(1)
    gradient = np.array([values["gradient"]])
    m, v = 0.9 * m + 0.1 * gradient, 0.999 * v + 0.001 * gradient**2
    return float((values["rate"] * (m / (1 - 0.9**1)) / (np.sqrt(v / (1 - 0.999**1)) + 1e-7)).item())


def copies(values: Mapping[str, Any]) -> dict[str, bool]:
    count = values["loading"]
    return {
        "predictions are equal": True,
        f"then has {count} {'copy' if count == 1 else 'copies'}": True,
        f"then has {values['saved']} copies": False,
        "saved decides": False,
    }


OWN_LAYER = {"Keras SavedModel": True, "`model.export`": True, "`.keras`": False, ".h5": False, "Checkpoint": False}
EXPECTED: dict[str, Expected] = {
    "format_for_a_purpose": call,
    "size_of_a_checkpoint": lambda v: (
        v["gigabytes"] * {"plain SGD": 1, "SGD with momentum": 2, "Adam": 3}[v["optimizer"]]
    ),
    "another_strategy": copies,
    "own_layer": lambda v: OWN_LAYER,
    "repeated_after_a_kill": lambda v: v["killed"] - v["per_epoch"] * int(v["killed"] / v["per_epoch"]),
    "step_after_a_loss_of_state": first_step_of_adam,
    "jump_of_the_loss": lambda v: (
        "Adam's averages were lost"
        if v["optimizer"] == "Adam"
        else "It is no loss of optimizer state: look at the data and the code"
    ),
    "order_after_a_restart": lambda v: v["done"] if "epoch" in v["way"].split("`")[1] else 0,
    "first_epoch": lambda v: v["epochs"] - (v["done"] if "Backup" in v["way"] else 0),
    "resumed_and_straight": lambda v: (
        "No: dropout draws the numbers of epoch 0 again" if v["dropout"] else "Yes, up to rounding"
    ),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_the_answer_is_the_independent_one(name: str) -> None:
    assert_expected(CHAPTER, name, EXPECTED[name])


def test_every_template_is_compared() -> None:
    assert set(EXPECTED) == names_of(CHAPTER)
