"""The answers of chapter 15 against Bash, counting and closed formulas."""

import subprocess
from collections.abc import Mapping
from math import ceil
from typing import Any

import pytest

from distlab.quizzes.chapters.chapter_15 import state_of_a_job
from distlab.quizzes.quiz import draw_item
from tests.distlab.quizzes.expectations import Expected, assert_expected, names_of

CHAPTER = "15"


NODES = {
    "node[1-3]": ("node1", "node2", "node3"),
    "node[08-10]": ("node08", "node09", "node10"),
    "gpu[4,7,9]": ("gpu4", "gpu7", "gpu9"),
}


def place(values: Mapping[str, Any]) -> str:
    if "salloc" in values["case"]:
        return "On the login node"
    return f"On all {values['nodes']} nodes" if "after" in values["case"] else "On the first node of the allocation"


def step_seconds(values: Mapping[str, Any]) -> float:
    p, bits = values["nodes"], 8e6 * values["megabytes"]
    exchange = 2 * (p - 1) * 2 + 1e3 * 2 * (p - 1) / p * bits / (1e6 * values["rate"])
    return float(values["computing"] + exchange)


def lever(values: Mapping[str, Any]) -> str:
    """By the two parts of the time: 14 latencies for each gradient, 14/8 of the bytes."""
    low_rate = values["line"].startswith("100 M")
    latencies = 14 * values["gradients"] * (0.05 if low_rate else 2)
    moving = 14 / 8 * values["kilobytes"] * (0.08 if low_rate else 0.0008)
    fused = latencies * (1 - 1 / values["gradients"])
    return "Tensor fusion" if fused > moving / 2 else "fp16 compression"


EXPECTED: dict[str, Expected] = {
    "where_it_runs": place,
    "state_of_a_job": lambda v: "FAILED" if v["strict"] else "COMPLETED",
    "lines_of_the_log": lambda v: v["nodes"] * v["per_node"] if v["command"].startswith("srun") else 1,
    "time_limit": lambda v: v["line"] if v["on the command line"] else v["top"],
    "host_of_a_rank": lambda v: NODES[v["names"]][v["rank"] // v["per_node"]],
    "steps_done_twice": lambda v: v["step"] % v["every"] if v["case"] == "A node dies" else 0,
    "jobs_of_an_array": lambda v: ceil(v["tasks"] / v["at_once"]) * v["minutes"],
    "predicted_step": step_seconds,
    "lever": lever,
    "accumulated_steps": lambda v: v["computing"] + v["exchange"] / v["batches"],
}


def test_bash_ends_with_the_status_that_the_answer_names() -> None:
    for seed in range(8):
        item = draw_item(CHAPTER, state_of_a_job, seed)
        script = item.block.replace("srun python train.py", "false")
        status = subprocess.run(["bash", "-c", script], capture_output=True, check=False).returncode
        assert item.right[0].text == ("FAILED" if status else "COMPLETED")


@pytest.mark.parametrize("name", EXPECTED)
def test_the_answer_is_the_independent_one(name: str) -> None:
    assert_expected(CHAPTER, name, EXPECTED[name])


def test_every_template_is_compared() -> None:
    assert set(EXPECTED) == names_of(CHAPTER)
