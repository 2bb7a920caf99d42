"""The picture of notebook 05: the parts of a run that each format keeps, as stacks of boxes.

Run it from anywhere: python figures/src/05_save_and_load.py
"""

import sys
from pathlib import Path

import distlab  # noqa: F401  (selects the course's Keras before anything can import TensorFlow)
from distlab import draw
from distlab.draw import QUIET, box, canvas, label, row

FOLDER = Path(__file__).parents[1]
# Each part has its height, counted from the bottom, and its colour in every stack.
PARTS = {
    "w": (0, "weights"),
    "o": (1, "optimizer\nstate"),
    "r": (1, "optimizer\nstate, rate"),
    "c": (2, "configuration:\nlayers, loss, rate"),
    "g": (3, "graph"),
    "e": (4, "epoch, step"),
}
# The parts that each format keeps.
FORMATS = {
    "export": "wg",
    "tf.saved_model\n.save": "wrg",
    "Keras\nSavedModel": "wrcg",
    ".keras": "woc",
    ".weights.h5": "wo",
    "checkpoint": "wr",
    "BackupAnd-\nRestore": "wre",
}
HEIGHT, STEP, BOTTOM = 0.48, 0.54, 0.5


def formats(folder: Path) -> None:
    """A stack for each format; what a checkpoint keeps on request is white."""
    figure, axes = canvas(7.4, 3.5)
    lefts, width = row(len(FORMATS), 0.08, 7.32, 0.1)
    for left, (name, kept) in zip(lefts, FORMATS.items(), strict=True):
        for part in kept:
            place, text = PARTS[part]
            box(axes, (left, BOTTOM + place * STEP), width, HEIGHT, text, place, fontsize=7.5)
        label(axes, (left + width / 2, 0.24), name, fontsize=8.5, fontweight="bold")
    added = "if you add\nthem: epoch,\niterator,\ngenerator"
    box(axes, (lefts[5], BOTTOM + 2 * STEP), width, HEIGHT + STEP, added, fontsize=7.5)
    label(axes, (3.7, 3.36), "in none of them by itself: the order of the data, the random state", color=QUIET)
    draw.save(
        figure,
        folder / "05_formats.svg",
        "Seven stacks of boxes, one for each format; the lowest box of each is the weights. export adds the graph. "
        "tf.saved_model.save adds the optimizer's state and learning rate, and the graph. A Keras SavedModel has "
        "these and the configuration: layers, loss and learning rate. A .keras file has weights, optimizer state and "
        "configuration. A .weights.h5 file has weights and Adam's state, a checkpoint also the learning rate, and "
        "epoch, generator and iterator if you add them. BackupAndRestore has weights, Adam's state, learning rate, "
        "epoch and step. In none by itself: the order of the data and the random state.",
    )


def main(folder: Path = FOLDER) -> None:
    """Draw it into a folder."""
    draw.apply_style()
    formats(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
