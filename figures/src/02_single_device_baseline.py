"""The picture of notebook 02: the input pipeline, its three stages, and what the cache saves.

Run it from anywhere: python figures/src/02_single_device_baseline.py
"""

import sys
from pathlib import Path

import distlab  # noqa: F401  (selects the course's Keras before anything can import TensorFlow)
from distlab import draw
from distlab.draw import QUIET, arrow, box, canvas, label, row

FOLDER = Path(__file__).parents[1]
STAGES = {"extract": ["read"], "transform": ["decode", "cache", "shuffle", "batch", "augment"], "load": ["prefetch"]}
HEIGHT, BOTTOM, GAP = 0.42, 0.5, 0.2


def input_pipeline(folder: Path) -> None:
    """Seven transformations from the file to the model, grouped by stage; below, which are repeated each epoch."""
    figure, axes = canvas(7.2, 1.4)
    names = [name for stage in STAGES.values() for name in stage]
    lefts, width = row(len(names) + 1, 0.1, 7.1, GAP)
    middle = BOTTOM + HEIGHT / 2
    for left, name in zip(lefts, [*names, "model"], strict=True):
        box(axes, (left, BOTTOM), width, HEIGHT, name)
        if left > lefts[0]:
            arrow(axes, (left - GAP, middle), (left, middle))

    def span(first: str, last: str, height: float, text: str) -> None:
        start, end = lefts[names.index(first)], lefts[names.index(last)] + width
        axes.plot([start, end], [height, height], color=QUIET, linewidth=1, marker="|", linestyle="-")
        label(axes, ((start + end) / 2, height + (0.16 if height > BOTTOM else -0.18)), text)

    for stage, members in STAGES.items():
        span(members[0], members[-1], 1.08, stage)
    span("read", "cache", 0.32, "done once, in the first epoch")
    span("shuffle", "prefetch", 0.32, "done in every epoch")
    draw.save(
        figure,
        folder / "02_input_pipeline.svg",
        "The input pipeline as a chain of boxes from left to right: read is the stage extract; decode, cache, shuffle, "
        "batch and augment are the stage transform; prefetch is the stage load; then comes the model. What stands "
        "before the cache is done once, in the first epoch; what comes after it in every epoch.",
    )


def main(folder: Path = FOLDER) -> None:
    """Draw it into a folder."""
    draw.apply_style()
    input_pipeline(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
