"""Two runs of a small training: undisturbed, and resumed from a checkpoint that lacks a part of the state."""

import copy
import json
from collections.abc import Callable
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from lab_05.given import PARTS

from distlab.labs.plain_data import Array

IMAGES, BATCH, FEATURES, RECORDS, MOST_STEPS = 24, 4, 6, 3, 420
ROUNDING = 1e-7
DECAYS, EPSILON = np.array([[0.9], [0.999]]), 1e-7  # Adam's
SMOOTH_SPREAD = 0.025, 0.045
"""The factors of the changes by which smooth gradients show lost averages: their range over their mean."""
LETTERS = {"A": "averages", "B": "data position", "C": "step count", "D": "random state"}
"""What each of the four checkpoints in `broken_runs.json` lacks; `drawn_runs` has made them."""

State = dict[str, Any]
"""All that a later step reads, by the names in PARTS. The random state is the number of masks that were drawn."""
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


class Training:
    """Linear regression with dropout of features, by Adam."""

    def __init__(self, generator: np.random.Generator, kind: TrainingKind) -> None:
        """Data, first weights and rate are drawn."""
        self.images, target = generator.normal(size=(IMAGES, FEATURES)), generator.normal(size=FEATURES)
        if kind.is_smooth:
            self.images, target = 1 + 0.2 * self.images, target - 20
        self.labels = self.images @ target * kind.scale
        epochs = np.tile(np.arange(IMAGES), (MOST_STEPS * BATCH // IMAGES, 1))
        self.numbers = generator.permuted(epochs, axis=1).reshape(-1, BATCH)
        self.masks = (generator.random((MOST_STEPS, FEATURES)) < (0.98 if kind.is_smooth else 0.7)).astype(int)
        self.new: State = {
            "weights": 3 * kind.scale * generator.normal(size=FEATURES),
            "averages": np.zeros((2, FEATURES)),
            "step count": 0,
            "learning rate": float(generator.choice([0.02, 0.03, 0.04])),
            "data position": 0,
            "random state": 0,
        }

    def step(self, state: State) -> tuple[State, Record]:
        """Train on the next images: the next state, and the record of the step."""
        rate, numbers = state["learning rate"], self.numbers[state["data position"]]
        mask = self.masks[state["random state"]]
        inputs = self.images[numbers] * mask
        errors = inputs @ state["weights"] - self.labels[numbers]
        gradient = 2 * inputs.T @ errors / BATCH
        averages = DECAYS * state["averages"] + (1 - DECAYS) * np.array([gradient, gradient**2])
        mean, square = averages / (1 - DECAYS ** (state["step count"] + 1))
        changes = -rate * mean / (np.sqrt(square) + EPSILON)
        counted = {name: state[name] + 1 for name in ("step count", "data position", "random state")}
        record = {
            "step": state["data position"],
            "numbers": numbers.tolist(),
            "mask": mask.tolist(),
            "loss": float(np.mean(errors**2)),
            "learning_rate": rate,
            "changes": changes.tolist(),
        }
        return {**state, **counted, "weights": state["weights"] + changes, "averages": averages}, record

    def records(self, state: State) -> list[Record]:
        """Of the next steps."""
        records = []
        for _ in range(RECORDS):
            state, record = self.step(state)
            records.append(record)
        return records


def drawn_once(generator: np.random.Generator, part: str, kind: TrainingKind) -> Runs:
    """Runs of a training of random data and place of the checkpoint, which lacks this part."""
    training = Training(generator, kind)
    before = int(generator.integers(kind.saved_after.start, kind.saved_after.stop))
    state, changed = training.new, int(generator.integers(3, before))
    for step in range(before):
        if step == changed:
            state = {**state, "learning rate": state["learning rate"] / 2}  # as the callback LearningRateScheduler does
        state, _ = training.step(state)
    runs = {"straight": training.records(state), "resumed": training.records({**state, part: training.new[part]})}
    for place, record in enumerate(runs["resumed"]):
        record["step"] = before + place
        record["loss"] *= 1 + ROUNDING * generator.normal()
        record["changes"] = (np.array(record["changes"]) * (1 + ROUNDING * generator.normal(size=FEATURES))).tolist()
    return runs


def factors_of(runs: Runs) -> Array:
    """By weight: the first change of the resumed run divided by that of the undisturbed one."""
    return np.array(runs["resumed"][0]["changes"]) / np.array(runs["straight"][0]["changes"])


def shows(runs: Runs, part: str, kind: TrainingKind) -> bool:
    """Whether the first step shows what is lacking, by a per cent or more."""
    pairs = list(zip(runs["straight"], runs["resumed"], strict=True))
    before, after = pairs[0]
    if np.abs(before["changes"]).min() < 0.05 * before["learning_rate"]:
        return False
    factors, (low, high) = factors_of(runs), SMOOTH_SPREAD
    spread = np.ptp(factors)
    is_shown = {
        "averages": low < spread / abs(factors.mean()) < high if kind.is_smooth else spread > 0.5,
        "step count": abs(factors[0] - 1) > 0.1,
        "weights": abs(after["loss"] / before["loss"] - 1) > 0.05,
        "learning rate": True,
        "data position": not set(before["numbers"]) & set(after["numbers"]),
        "random state": all(before["mask"] != after["mask"] for before, after in pairs),
    }
    return bool(is_shown[part])


def drawn_runs(
    generator: np.random.Generator,
    part: str,
    kind: TrainingKind = EARLY,
    suits: Callable[[Array], object] = lambda factors: True,
) -> Runs:
    """Runs which show that the checkpoint lacks this part, and the factors of whose first changes suit."""
    while True:
        runs = drawn_once(generator, part, kind)
        if shows(runs, part, kind) and suits(factors_of(runs)):
            return runs


@lru_cache(maxsize=4)  # one check after another, and the grader for each student, ask for the same
def hidden_runs(seed: int) -> dict[str, list[Runs]]:
    """For each part runs that lack it; rules that hold for many runs only fail in one of them, whatever is drawn."""
    generator = np.random.default_rng(seed)
    by_part = {part: [drawn_runs(generator, part, kind) for kind in (EARLY, EARLY, LATE, SMALL)] for part in PARTS}
    for part in ("averages", "step count") * 2:
        by_part[part].append(drawn_runs(generator, part, SMOOTH))
    averages = by_part["averages"]
    for pair in ([0, 1], [2, 3], [4, 5]):  # two weights change by the same factor: dropout has left out both
        averages.append(drawn_runs(generator, "averages", suits=lambda factors, pair=pair: not factors[pair].any()))
    # All changes keep their direction and become smaller.
    averages.append(drawn_runs(generator, "averages", suits=lambda factors: factors.min() >= 0 and factors.max() < 1))
    for part in ("averages", "step count", "learning rate"):  # the judge knows by these who compares all digits
        runs = copy.deepcopy(by_part[part][0])
        runs["resumed"][0]["loss"] = runs["straight"][0]["loss"]
        by_part[part].append(runs)
    return by_part


@cache
def lettered_runs() -> dict[str, Runs]:
    """Those that students see, by letter."""
    runs: dict[str, Runs] = json.loads(Path(__file__).with_name("broken_runs.json").read_text())
    return runs
