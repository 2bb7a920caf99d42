"""The answers of chapter 14 against NumPy and arithmetic."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from tests.distlab.quizzes.expectations import Expected, assert_expected, names_of

CHAPTER = "14"


def flattened(values: Mapping[str, Any]) -> float:
    """Mark the feature in an array and look for it after the reshape."""
    image = np.zeros((values["side"], values["side"], values["channels"]))
    image[values["row"], values["column"], values["channel"]] = 1
    line = image if values["framework"] == "Keras" else image.transpose(2, 0, 1)
    return float(np.argmax(line.reshape(-1)))


def wrapped(values: Mapping[str, Any]) -> dict[str, bool]:
    is_ddp = values["way"] == "DistributedDataParallel"
    return {
        "Rank 0 can write": is_ddp,
        "The wrapper itself": is_ddp,
        f"1/{values['ranks']} of every weight": not is_ddp,
        "All ranks must": not is_ddp,
        "The optimizer is wrapped": False,
    }


def kept(values: Mapping[str, Any]) -> float:
    n = values["ranks"]
    return float(values["gigabytes"] * {"DDP": 2, "ZeRO 1": 1 + 1 / n, "FSDP": 2 / n}[values["way"]])


WHERE = {
    "first": "The layout of the weights, the order of the images, mean or sum in the loss",
    "second": "The optimizer and the all-reduce",
}
EXPECTED: dict[str, Expected] = {
    "place_after_flatten": flattened,
    "where_losses_part": lambda v: WHERE[v["case"]],
    "orders_of_a_sampler": lambda v: v["epochs"] if v["calls"] else 1,
    "sums_and_means": lambda v: v["rate"] * (v["ranks"] if v["case"] == "TensorFlow" else 1 / v["ranks"]),
    "who_must_call": wrapped,
    "states_on_a_rank": kept,
    "silent_clipping": lambda v: v["rate"] * (1 if v["norm"] > 1 else v["norm"]),
    "traffic_of_a_worker": lambda v: v["megabytes"] * (1 - 2 / v["ranks"]),
    "traffic_of_a_server": lambda v: v["megabytes"] * v["workers"] / v["servers"],
    "rescaled_gradient": lambda v: v["batch"] * (v["workers"] if v["mode"] == "dist_sync" else 1),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_the_answer_is_the_independent_one(name: str) -> None:
    assert_expected(CHAPTER, name, EXPECTED[name])


def test_every_template_is_compared() -> None:
    assert set(EXPECTED) == names_of(CHAPTER)
