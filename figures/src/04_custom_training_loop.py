"""The picture of notebook 04: the levels of the U-Net, with sizes read from the model itself.

Run it from anywhere: python figures/src/04_custom_training_loop.py
"""

import sys
from itertools import pairwise
from pathlib import Path

import distlab  # noqa: F401  (selects the course's Keras before anything can import TensorFlow)
from distlab import draw, models
from distlab.draw import QUIET, RANK_COLOURS, arrow, box, canvas, label

FOLDER = Path(__file__).parents[1]
FILTERS = 8
WIDTH, HEIGHT = 1.5, 0.42
OVERLAP = 0.3  # of a box with its neighbour on the next level


def feature_shapes(filters: int) -> list[tuple[int, int]]:
    """(size, channels) of the features after each pair of 3 × 3 convolutions, in the order of computation."""
    layers = models.unet(filters).layers
    convolutions = [layer.output.shape for layer in layers if getattr(layer, "kernel_size", None) == (3, 3)]
    return [(shape[1], shape[3]) for shape in convolutions[1::2]]


def unet(folder: Path) -> None:
    """Five pairs of convolutions on three levels, and what connects them."""
    shapes = feature_shapes(FILTERS)
    corners = [(0.2, 2.1), (1.4, 1.15), (2.6, 0.2), (3.8, 1.15), (5.0, 2.1)]
    figure, axes = canvas(6.7, 3.25)
    for corner, (size, channels) in zip(corners, shapes, strict=True):
        box(axes, corner, WIDTH, HEIGHT, f"{size} × {size} × {channels}")
    # Each vertical arrow runs where a box and its neighbour one level down overlap.
    for (left, upper), (_, lower) in pairwise(corners[:3]):
        x = left + WIDTH - OVERLAP / 2
        arrow(axes, (x, upper), (x, lower + HEIGHT))
        label(axes, (x - 0.1, (upper + lower + HEIGHT) / 2), "max pooling", ha="right", fontsize=8)
    for (left, lower), (_, upper) in pairwise(corners[2:]):
        x = left + WIDTH - OVERLAP / 2
        arrow(axes, (x, lower + HEIGHT), (x, upper))
        label(axes, (x + 0.1, (lower + HEIGHT + upper) / 2), "transposed convolution", ha="left", fontsize=8)
    copied = RANK_COLOURS[3]
    for start, end in ((corners[0], corners[4]), (corners[1], corners[3])):
        height = start[1] + HEIGHT / 2
        arrow(axes, (start[0] + WIDTH, height), (end[0], height), copied, (0, (4, 3)))
    label(axes, (3.35, 2.46), "copied and concatenated", color=copied)
    arrow(axes, (0.95, 2.9), (0.95, 2.1 + HEIGHT))
    label(axes, (0.95, 3.05), "noisy image, 28 × 28")
    arrow(axes, (5.75, 2.1 + HEIGHT), (5.75, 2.9))
    label(axes, (5.75, 3.05), "logits, 28 × 28")
    label(axes, (5.65, 2.71), "1 × 1 convolution", ha="right", fontsize=8)
    legend = "each box: two 3 × 3 convolutions\nheight × width × channels"
    label(axes, (0.2, 0.32), legend, ha="left", color=QUIET, fontsize=8)
    top, middle, bottom = (f"{size} × {size} with {channels} channels" for size, channels in shapes[:3])
    draw.save(
        figure,
        folder / "04_unet.svg",
        "The U-Net as a U of five boxes, each two 3 × 3 convolutions. The noisy image, 28 × 28, enters at the upper "
        f"left: {top}. Max pooling leads down to {middle}, and again down to {bottom}. Transposed convolutions lead up "
        f"the right side, first to {middle}, then to {top}. On both upper levels a dashed arrow copies the left box's "
        "features to the right box. At the upper right a 1 × 1 convolution gives the logits, 28 × 28.",
    )


def main(folder: Path = FOLDER) -> None:
    """Draw it into a folder."""
    draw.apply_style()
    unet(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
