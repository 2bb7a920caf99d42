"""The answers of chapter 08 against a queue of workers, drawn steps and arithmetic."""

import heapq
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from tests.distlab.quizzes.expectations import Expected, assert_expected, names_of

CHAPTER = "08"


WAYS = {
    "equal GPUs and a fast network": "Synchronous, with an all-reduce",
    "one machine that is always slower": "Synchronous, with fewer images for the slow one",
    "steps that are slow now and then, on any machine": "Synchronous, with backup workers",
    "machines that come and go": "Asynchronous, with parameter servers",
}


def pieces(values: Mapping[str, Any]) -> float:
    """Cut into more and more pieces, as long as the smallest has 64 KiB."""
    size, count = values["rows"] * values["columns"] * 4, 1
    while count < values["shards"] and size / (count + 1) >= 64 * 1024:
        count += 1
    return float(count)


def rate(values: Mapping[str, Any]) -> float:
    """Count the gradients of many seconds."""
    workers, slow, fast = values["workers"], values["slow"] / 1000, 0.05
    if values["way"] == "synchronous":
        return float(workers / slow)
    return float((workers - 1) / fast + 1 / slow)


EXPECTED: dict[str, Expected] = {
    "processes_of_a_cluster": lambda v: v["workers"] + v["servers"] + 1,
    "central_storage": lambda v: 1 - v["rate"] * v["replicas"] * v["gradient"],
    "pieces_of_a_variable": pieces,
    "mean_staleness": lambda v: v["workers"] - 1,
    "staleness_of_the_slow": lambda v: v["times"] * (v["workers"] - 1),
    "gradients_per_second": rate,
    "unlucky_steps": lambda v: 100 * (1 - (1 - v["percent"] / 100) ** v["workers"]),
    "backup_workers": lambda v: 100 * v["backups"] / (v["workers"] + v["backups"]),
    "which_way": lambda v: WAYS[v["cluster"]],
    "added_twice": lambda v: v["workers"] if v["optimizer"] == "SGD" else 1,
}


@pytest.mark.parametrize(("workers", "times"), [(3, 3), (8, 5)])
def test_a_slow_worker_catches_that_many_updates_in_a_queue(workers: int, times: int) -> None:
    seconds = [times * 1.0] + [1.0] * (workers - 1)
    ready = [(moment, worker) for worker, moment in enumerate(seconds)]
    heapq.heapify(ready)
    read_at, stale = [0] * workers, []
    for updates in range(400):
        moment, worker = heapq.heappop(ready)
        if worker == 0:
            stale.append(updates - read_at[0])
        read_at[worker] = updates + 1
        heapq.heappush(ready, (moment + seconds[worker], worker))
    assert np.mean(stale[1:]) == pytest.approx(times * (workers - 1), abs=1)


def test_drawn_steps_wait_as_often_as_computed() -> None:
    is_slow = np.random.default_rng(8).random((50_000, 8)) < 0.05
    expected = EXPECTED["unlucky_steps"]({"workers": 8, "percent": 5})
    assert 100 * is_slow.any(axis=1).mean() == pytest.approx(expected, abs=1)


@pytest.mark.parametrize("name", EXPECTED)
def test_the_answer_is_the_independent_one(name: str) -> None:
    assert_expected(CHAPTER, name, EXPECTED[name])


def test_every_template_is_compared() -> None:
    assert set(EXPECTED) == names_of(CHAPTER)
