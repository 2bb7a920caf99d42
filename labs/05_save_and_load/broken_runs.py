"""Two runs of a small training: undisturbed, and resumed from a checkpoint that lacks a part of the state."""

import copy
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from lab_05.given import PARTS

from distlab.labs.plain_data import Array

IMAGES, BATCH, FEATURES, RECORDS = 24, 4, 6, 3
ROUNDING = 1e-7
FIRST_DECAY, SECOND_DECAY, EPSILON = 0.9, 0.999, 1e-7
SMOOTH_SPREAD = 0.025, 0.045
"""The factors of the changes by which smooth gradients show lost averages: their range over their mean."""
LETTERS = {"A": "averages", "B": "data position", "C": "step count", "D": "random state"}
"""What each of the four checkpoints in `broken_runs.json` lacks; `drawn_runs` has made them."""

Record = dict[str, Any]
Runs = dict[str, list[Record]]
"""The runs "straight" and "resumed": for each a record of every step after the checkpoint."""


class TrainingKind(NamedTuple):
    """A kind of training.

    saved_after: how many steps before the checkpoint.  scale: of weights and target; the loss has its square.
    is_smooth: with gradients that keep their signs, so that lost averages only shorten the changes, all by nearly one
    factor.
    """

    saved_after: range
    scale: float = 1.0
    is_smooth: bool = False


EARLY, LATE = TrainingKind(range(10, 40)), TrainingKind(range(150, 400))
"""A lost step count makes the next change larger, or smaller."""
SMALL, SMOOTH = TrainingKind(range(10, 40), scale=0.02), TrainingKind(range(10, 40), scale=0.1, is_smooth=True)


@lru_cache(maxsize=64)
def order_of(seed: int, epoch: int) -> Array:
    """The images of an epoch in their order: the same for every step of it."""
    return np.random.default_rng([seed, 2, epoch]).permutation(IMAGES)


@dataclass
class Training:
    """Linear regression with dropout of features, by Adam; all that changes, and what a new process has of it."""

    seed: int
    rate: float
    kind: TrainingKind
    weights: Array = field(init=False)
    first: Array = field(init=False)
    second: Array = field(init=False)
    step_count: int = 0
    position: int = 0

    def __post_init__(self) -> None:
        data = np.random.default_rng([self.seed, 0])
        self.images, self.target = data.normal(size=(IMAGES, FEATURES)), data.normal(size=FEATURES)
        self.weights, self.kept = 3 * data.normal(size=FEATURES), 0.7
        if self.kind.is_smooth:
            self.images, self.target, self.kept = 1 + 0.2 * self.images, self.target - 20, 0.98
        self.weights, self.target = self.kind.scale * self.weights, self.kind.scale * self.target
        self.first, self.second = np.zeros(FEATURES), np.zeros(FEATURES)
        self.random = np.random.default_rng([self.seed, 1])

    def step(self) -> Record:
        """Train on the next images, and record it."""
        epoch, place = divmod(self.position, IMAGES // BATCH)
        numbers = order_of(self.seed, epoch)[place * BATCH : (place + 1) * BATCH]
        mask = (self.random.random(FEATURES) < self.kept).astype(int)
        inputs = self.images[numbers] * mask
        errors = inputs @ self.weights - self.images[numbers] @ self.target
        gradient = 2 * inputs.T @ errors / BATCH
        self.step_count += 1
        self.first += (1 - FIRST_DECAY) * (gradient - self.first)
        self.second += (1 - SECOND_DECAY) * (gradient**2 - self.second)
        mean = self.first / (1 - FIRST_DECAY**self.step_count)
        changes = -self.rate * mean / (np.sqrt(self.second / (1 - SECOND_DECAY**self.step_count)) + EPSILON)
        self.weights = self.weights + changes
        self.position += 1
        return {
            "step": self.position - 1,
            "numbers": numbers.tolist(),
            "mask": mask.tolist(),
            "loss": float(np.mean(errors**2)),
            "learning_rate": self.rate,
            "changes": changes.tolist(),
        }

    def without(self, part: str, new: "Training") -> "Training":
        """A copy which has, of this part, what a new process has."""
        lost = copy.deepcopy(self)
        names = {"averages": ("first", "second"), "step count": ("step_count",), "learning rate": ("rate",)}
        names |= {"data position": ("position",), "random state": ("random",), "weights": ("weights",)}
        for name in names[part]:
            setattr(lost, name, getattr(new, name))
        return lost


def drawn_once(generator: np.random.Generator, part: str, kind: TrainingKind) -> Runs:
    """Runs of a training of random size, data and place of the checkpoint, which lacks this part."""
    seed, rate = int(generator.integers(1_000_000)), float(generator.choice([0.02, 0.03, 0.04]))
    training = Training(seed, rate, kind)
    before = int(generator.integers(kind.saved_after.start, kind.saved_after.stop))
    changed = int(generator.integers(3, before))
    for step in range(before):
        if step == changed:
            training.rate = rate / 2  # as the callback LearningRateScheduler does
        training.step()
    lost = training.without(part, Training(seed, rate, kind))
    runs = {"straight": [training.step() for _ in range(RECORDS)], "resumed": [lost.step() for _ in range(RECORDS)]}
    for place, record in enumerate(runs["resumed"]):
        record["step"] = before + place
        record["loss"] *= 1 + ROUNDING * generator.normal()
        record["changes"] = (np.array(record["changes"]) * (1 + ROUNDING * generator.normal(size=FEATURES))).tolist()
    return runs


def shows(runs: Runs, part: str, kind: TrainingKind) -> bool:
    """Whether the first step shows what is lacking, by a per cent or more."""
    pairs = list(zip(runs["straight"], runs["resumed"], strict=True))
    before, after = pairs[0]
    changes = np.array(before["changes"])
    if np.abs(changes).min() < 0.05 * before["learning_rate"]:
        return False
    factors = np.array(after["changes"]) / changes
    if part == "averages":
        spread, (low, high) = np.ptp(factors), SMOOTH_SPREAD
        return bool(low < spread / abs(factors.mean()) < high if kind.is_smooth else spread > 0.5)
    if part == "step count":
        return bool(abs(factors[0] - 1) > 0.1)
    if part == "weights":
        return bool(abs(after["loss"] / before["loss"] - 1) > 0.05)
    return bool(
        part == "learning rate"
        or (part == "data position" and not set(before["numbers"]) & set(after["numbers"]))
        or (part == "random state" and all(before["mask"] != after["mask"] for before, after in pairs))
    )


def drawn_runs(
    generator: np.random.Generator,
    part: str,
    kind: TrainingKind = EARLY,
    without: Sequence[int] = (),
) -> Runs:
    """Runs which show that the checkpoint lacks this part; dropout leaves out these weights in the first step."""
    while True:
        runs = drawn_once(generator, part, kind)
        if shows(runs, part, kind) and not any(runs["resumed"][0]["mask"][weight] for weight in without):
            return runs


@lru_cache(maxsize=4)  # one check after another, and the grader for each student, ask for the same
def hidden_runs(seed: int) -> dict[str, list[Runs]]:
    """For each part runs that lack it; rules that hold for many runs only fail in one of them, whatever is drawn."""
    generator = np.random.default_rng(seed)
    by_part = {part: [drawn_runs(generator, part, kind) for kind in (EARLY, EARLY, LATE, SMALL)] for part in PARTS}
    for part in ("averages", "step count") * 2:
        by_part[part].append(drawn_runs(generator, part, SMOOTH))
    for pair in ([0, 1], [2, 3], [4, 5]):  # two weights change by the same factor: dropout has left out both
        by_part["averages"].append(drawn_runs(generator, "averages", without=pair))
    for part in ("averages", "step count", "learning rate"):  # the judge knows by these who compares all digits
        runs = copy.deepcopy(by_part[part][0])
        runs["resumed"][0]["loss"] = runs["straight"][0]["loss"]
        by_part[part].append(runs)
    # All changes keep their direction and become smaller.
    by_part["averages"].append(drawn_runs(np.random.default_rng([5, 32]), "averages"))
    return by_part


@cache
def lettered_runs() -> dict[str, Runs]:
    """Those that students see, by letter."""
    runs: dict[str, Runs] = json.loads(Path(__file__).with_name("broken_runs.json").read_text())
    return runs
