"""What lab 05 works on: the training to resume, and the parts that a broken checkpoint may lack."""

import inspect
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from lab_05.small_training import SmallTraining

PARTS = ("weights", "averages", "step count", "learning rate", "data position", "random state")
"""What a checkpoint may lack: Adam's averages are m and v, its step count is t."""


def training() -> "SmallTraining":
    """An example, as a new process makes it: 40 steps of 4 out of 24 images."""
    from lab_05.small_training import SmallTraining

    generator = np.random.default_rng(5)
    images = generator.normal(size=(24, 5)).astype(np.float32)
    rows = np.concatenate([generator.permutation(24).reshape(6, 4) for _ in range(7)])[:40]
    return SmallTraining(images, generator.integers(0, 3, 24), rows.tolist())


def source() -> str:
    """The text of the training's class."""
    from lab_05.small_training import SmallTraining

    return inspect.getsource(SmallTraining)


def described(runs: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Two runs next to each other: a line for each step of either."""
    lines = []
    for pair in zip(*runs.values(), strict=True):
        lines += [f"  {name:9}{_in_words(record)}" for name, record in zip(runs, pair, strict=True)]
    return "\n".join(lines)


def _in_words(record: Mapping[str, Any]) -> str:
    numbers = ",".join(map(str, record["numbers"]))
    mask = "".join(map(str, record["mask"]))
    changes = " ".join(f"{change:+.5f}" for change in record["changes"])
    return (
        f"step {record['step']:<3} images {numbers:12} mask {mask}  loss {record['loss']:.4f}  "
        f"rate {record['learning_rate']:g}  changes {changes}"
    )
