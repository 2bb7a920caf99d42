"""The picture of chapter 03: one process, two replicas, mirrored variables, one pipeline, and the all-reduce.

Run it from anywhere: python figures/src/03_mirrored_strategy.py
"""

import sys
from pathlib import Path

import distlab  # noqa: F401  (selects the course's Keras before anything can import TensorFlow)
from distlab import draw
from distlab.draw import QUIET, arrow, box, canvas, label, row

FOLDER = Path(__file__).parents[1]
REPLICAS, PER_REPLICA = 2, 32
LEFT, RIGHT = 0.25, 6.95


def mirrored_strategy(folder: Path) -> None:
    """From top to bottom: the pipeline, the parts of a batch, a replica on each device, the all-reduce."""
    figure, axes = canvas(7.2, 4.5)
    box(axes, (0.1, 0.1), 7.0, 4.1)
    label(axes, (0.1, 4.34), "one process, one Python program", ha="left", fontweight="bold")
    lefts, width = row(REPLICAS, LEFT, RIGHT, 0.5)
    quiet = {"fontsize": 8, "color": QUIET}
    middles = [left + width / 2 for left in lefts]
    pipeline = f"one input pipeline: the next global batch, {REPLICAS * PER_REPLICA} images"
    box(axes, (1.6, 3.65), 4.0, 0.38, pipeline)
    for device, (left, middle) in enumerate(zip(lefts, middles, strict=True)):
        arrow(axes, (3.6, 3.65), (middle, 3.27))
        box(axes, (left, 1.05), width, 2.2)
        label(axes, (left + 0.1, 3.07), f"replica {device} on GPU:{device}", ha="left", fontweight="bold")
        inner, inside = left + 0.15, width - 0.3
        box(axes, (inner, 2.5), inside, 0.38, f"its part of the batch: {PER_REPLICA} images", device)
        box(axes, (inner, 1.85), inside, 0.38, "forward, backward: its own gradient", device)
        outer, start = (inner + 0.15, inner + 0.4) if device == 0 else (inner + inside - 0.15, inner)
        box(axes, (start, 1.2), inside - 0.4, 0.38, "copy of each mirrored variable")
        arrow(axes, (middle, 2.5), (middle, 2.23))
        arrow(axes, (outer, 1.85), (outer, 0.73))
        arrow(axes, (middle, 0.73), (middle, 1.2))
        label(axes, (outer + 0.08 - device * 0.16, 0.89), "gradient", ha=("left", "right")[device], **quiet)
        label(axes, (middle + 0.08, 0.89), "sum", ha="left", **quiet)
    label(axes, (3.6, 1.39), "=", fontsize=16)
    label(axes, (3.6, 1.13), "equal", **quiet)
    text = "all-reduce: adds the gradients, gives every replica the sum; each applies it to its copy"
    box(axes, (LEFT, 0.33), RIGHT - LEFT, 0.4, text)
    draw.save(
        figure,
        folder / "03_mirrored_strategy.svg",
        "One process of Python. One input pipeline gives a global batch of 64 images, which is divided into a part of "
        "32 images for each of two replicas, one on GPU 0 and one on GPU 1. Each replica computes its own gradient "
        "from its part. An all-reduce adds the gradients and gives every replica the sum. Each replica applies it to "
        "its copy of each mirrored variable, so that the copies stay equal.",
    )


def main(folder: Path = FOLDER) -> None:
    """Draw it into a folder."""
    draw.apply_style()
    mirrored_strategy(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
