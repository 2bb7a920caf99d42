"""The answers of chapter 07 against arithmetic and the text of TF_CONFIG."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from distlab import cluster_spec
from distlab.quizzes.quiz import draw_item
from tests.distlab.quizzes.expectations import SEEDS, Expected, assert_expected, names_of

CHAPTER = "07"


def uneven(values: Mapping[str, Any]) -> float:
    if values["feeding"] == "drop_remainder":
        return float(values["samples"] % values["batch"])
    return float(-values["samples"] % values["batch"])


def mixed_metric(values: Mapping[str, Any]) -> float:
    (first, second), others = values["sums"], values["workers"] - 1
    return float((values["mean"] + others * first) / (1 + others * second))


def accuracy(values: Mapping[str, Any]) -> dict[str, bool]:
    samples = np.repeat(values["means"], values["counts"])
    return {f"The accuracy of all is {samples.mean():.3f}": True, "evaluate": True, "waits forever": False}


def sharded_reads(values: Mapping[str, Any]) -> float:
    samples = values["workers"] * values["files per worker"] * values["of_file"]
    return float(samples * (values["workers"] if values["policy"] == "DATA" else 1))


def too_few(values: Mapping[str, Any]) -> str:
    if values["files"] < values["workers"]:
        return "It fails, since there are fewer files than workers."
    return f"Each worker reads {-(-values['files'] // values['workers'])} of the files."


EXPECTED: dict[str, Expected] = {
    "own_address": lambda v: f"node{v['index'] + 1}:2222",
    "broken_config": lambda v: f"{v['mistake']}.",
    "samples_of_a_worker": lambda v: v["batch"] / v["workers"],
    "steps_with_full_batches": lambda v: v["samples"] // (v["batch"] * v["workers"]),
    "auto_sharding": sharded_reads,
    "too_few_files": too_few,
    "save_by_the_chief": lambda v: "It waits forever." if v["layers"] else "It writes the checkpoint.",
    "metric_of_the_chief": mixed_metric,
    "uneven_samples": uneven,
    "accuracy_of_workers": accuracy,
}


@pytest.mark.parametrize("name", EXPECTED)
def test_the_answer_is_the_independent_one(name: str) -> None:
    assert_expected(CHAPTER, name, EXPECTED[name])


def test_every_template_is_compared() -> None:
    assert set(EXPECTED) == names_of(CHAPTER)


def test_the_broken_config_is_broken_in_the_named_way() -> None:
    from distlab.quizzes.chapters.chapter_07 import broken_config

    for seed in SEEDS:
        item = draw_item(CHAPTER, broken_config, seed)
        with pytest.raises(cluster_spec.ClusterSpecError):
            cluster_spec.check(item.block)
        if item.values["mistake"] == "It has Python's quotes":
            with pytest.raises(json.JSONDecodeError):
                json.loads(item.block)
            continue
        config = json.loads(item.block)
        addresses = config["cluster"]["worker"]
        signs = {
            "The index is counted from 1": config["task"]["index"] == len(addresses),
            "An address has no port": not all(":" in address for address in addresses),
            "An address appears twice": len(set(addresses)) < len(addresses),
        }
        assert [name for name, is_so in signs.items() if is_so] == [item.values["mistake"]]
