"""Keeps a training that begins from replacing what another has saved in its folder.

Notebook 13 shows what makes checkpoints safe, and how to resume from the newest one that is whole.
"""

import re
from pathlib import Path

STATES = ("*.index", "*.weights.h5")
"""Patterns of what is saved in a folder: TensorFlow's checkpoints, and weights of Keras."""


def check_unused(folder: Path) -> None:
    """End the program with one sentence if states are saved in the folder, which a new training would replace."""
    if name := newest(folder):
        raise SystemExit(
            f"{folder} holds checkpoints, the newest is {name}: add --resume to go on, or choose another folder."
        )


def newest(folder: Path) -> str | None:
    """The name of the saved state with the highest number, such as checkpoint-3; None without any."""
    names = [file.name.removesuffix(".index") for pattern in STATES for file in folder.glob(pattern)]
    numbered = [match for name in names if (match := re.fullmatch(r"(?:.+-)?(\d+)(?:\.weights\.h5)?", name))]
    return max(numbered, key=lambda match: int(match[1]))[0] if numbered else None
