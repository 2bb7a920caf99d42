"""The answers of chapter 11 against closed formulas and counted batches."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.distlab.quizzes.expectations import Expected, assert_expected, names_of

CHAPTER = "11"


def whole_batches(images: int, batch: int) -> int:
    """The images of all batches that are full, counted one after another."""
    return sum(batch for start in range(0, images, batch) if start + batch <= images)


def claimed_less(values: Mapping[str, Any]) -> float:
    many, alone = (whole_batches(60_000, values["batch"] * gpus) for gpus in (values["gpus"], 1))
    return float(100 * values["claimed"] * many / alone)


def karp_and_flatt(values: Mapping[str, Any]) -> float:
    p, seconds = values["ranks"], round(100 * (values["share"] + (1 - values["share"]) / values["ranks"]), 1)
    return float((seconds - 100 / p) / (1 - 1 / p))


def strong(values: Mapping[str, Any]) -> float:
    computing, p = values["computing"], values["ranks"]
    return float(100 * computing / (p * (computing / p + values["exchange"])))


EXPECTED: dict[str, Expected] = {
    "images_processed": lambda v: whole_batches(v["images"], v["batch"] * v["gpus"]),
    "true_efficiency": claimed_less,
    "amdahl_speedup": lambda v: 1 / (v["percent"] / 100 + (1 - v["percent"] / 100) / v["ranks"]),
    "serial_share_of": karp_and_flatt,
    "strong_scaling": strong,
    "more_ranks_than_cores": lambda v: 100 / v["times"],
    "what_is_lost": lambda v: v["exchange"],
    "bandwidths": lambda v: v["megabytes"] / v["milliseconds"] * 2 * (v["ranks"] - 1) / v["ranks"],
    "who_is_late": lambda v: f"Find out why rank {v['late']} is slow",
    "bytes_in_a_profile": lambda v: {
        f"{4e-6 * v['parameters'] * v['steps'] * v['epochs']:,.1f} MB of gradient": True,
        "NCCL": False,
        "Seconds in": True,
    },
}


@pytest.mark.parametrize("name", EXPECTED)
def test_the_answer_is_the_independent_one(name: str) -> None:
    assert_expected(CHAPTER, name, EXPECTED[name])


def test_every_template_is_compared() -> None:
    assert set(EXPECTED) == names_of(CHAPTER)
