"""Two runs of a small training: undisturbed, and resumed from a checkpoint that lacks a part of the state."""

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

IMAGES, BATCH, FEATURES, KEPT = 24, 4, 6, 0.7
RECORDS = 3
ROUNDING = 1e-7
FIRST_DECAY, SECOND_DECAY, EPSILON = 0.9, 0.999, 1e-7
SEED = 5
SMOOTH_SPREAD = 0.025, 0.045
"""The factors of the changes by which smooth gradients show lost averages: their range over their mean."""
LETTERS = {"A": "averages", "B": "data position", "C": "step count", "D": "random state"}
"""What each of the lab's own four checkpoints lacks."""


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

Array = NDArray[np.float64]
Record = dict[str, Any]
Runs = dict[str, list[Record]]
"""The runs "straight" and "resumed": for each a record of every step after the checkpoint."""


@lru_cache(maxsize=64)
def _order(seed: int, epoch: int) -> NDArray[np.int64]:
    """The images of an epoch in their order: the same for every step of it."""
    return np.random.default_rng([seed, 2, epoch]).permutation(IMAGES)


@dataclass
class _Training:
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
        self.weights = 3 * data.normal(size=FEATURES)
        self.kept = KEPT
        if self.kind.is_smooth:
            self.images, self.target, self.kept = 1 + 0.2 * self.images, self.target - 20, 0.98
        self.weights, self.target = self.kind.scale * self.weights, self.kind.scale * self.target
        self.first, self.second = np.zeros(FEATURES), np.zeros(FEATURES)
        self.random = np.random.default_rng([self.seed, 1])

    def step(self) -> Record:
        epoch, place = divmod(self.position, IMAGES // BATCH)
        order = _order(self.seed, epoch)
        numbers = order[place * BATCH : (place + 1) * BATCH]
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
        record = {
            "step": self.position,
            "numbers": numbers.tolist(),
            "mask": mask.tolist(),
            "loss": float(np.mean(errors**2)),
            "learning_rate": self.rate,
            "changes": changes.tolist(),
        }
        self.position += 1
        return record


def _without(training: _Training, new: _Training, part: str) -> None:
    """Give the training, of this part, what a new process has."""
    if part == "weights":
        training.weights = new.weights
    elif part == "averages":
        training.first, training.second = new.first, new.second
    elif part == "step count":
        training.step_count = 0
    elif part == "learning rate":
        training.rate = new.rate
    elif part == "data position":
        training.position = 0
    else:
        training.random = new.random


def _drawn_once(generator: np.random.Generator, part: str, kind: TrainingKind) -> Runs:
    seed, rate = int(generator.integers(1_000_000)), float(generator.choice([0.02, 0.03, 0.04]))
    training = _Training(seed, rate, kind)
    before = int(generator.integers(kind.saved_after.start, kind.saved_after.stop))
    changed = int(generator.integers(3, before))
    for step in range(before):
        if step == changed:
            training.rate = rate / 2  # as the callback LearningRateScheduler does
        training.step()
    resumed = copy.deepcopy(training)
    _without(resumed, _Training(seed, rate, kind), part)
    runs = {"straight": [training.step() for _ in range(RECORDS)], "resumed": [resumed.step() for _ in range(RECORDS)]}
    for place, record in enumerate(runs["resumed"]):
        record["step"] = before + place
        record["loss"] *= 1 + ROUNDING * generator.normal()
        record["changes"] = (np.array(record["changes"]) * (1 + ROUNDING * generator.normal(size=FEATURES))).tolist()
    return runs


def _shows(runs: Runs, part: str, kind: TrainingKind) -> bool:
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
    fits: Callable[[Runs], bool] = lambda runs: True,
) -> Runs:
    """Runs of a training of random size, data and place of the checkpoint, which lacks this part, and which fit."""
    while True:
        runs = _drawn_once(generator, part, kind)
        if _shows(runs, part, kind) and fits(runs):
            return runs


def averages_lost_with_equal_factors(generator: np.random.Generator, first: int, second: int) -> Runs:
    """Runs that lack the averages, in which these two weights change by the same factor: dropout left out both."""

    def fits(runs: Runs) -> bool:
        mask = runs["resumed"][0]["mask"]
        return not mask[first] and not mask[second]

    return drawn_runs(generator, "averages", fits=fits)


def averages_lost_from_smooth_gradients() -> Runs:
    """Runs in which all changes keep their direction and become smaller: factors of the same whole part, 0."""
    return drawn_runs(np.random.default_rng([SEED, 32]), "averages")


@cache
def lettered_runs() -> dict[str, Runs]:
    """The lab's own four, which are in its file `broken_runs.json`."""
    return {
        letter: drawn_runs(np.random.default_rng([SEED, number]), LETTERS[letter])
        for number, letter in enumerate("ABCD")
    }
