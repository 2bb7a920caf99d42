"""Diagrams of boxes, arrows and labels on an empty canvas; a box's number selects its colour and hatch."""

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from distlab.draw.style import INK, QUIET, Colour, Dash, colour_of, hatch_of

Point = tuple[float, float]


def canvas(width: float, height: float) -> tuple[Figure, Axes]:
    """An empty figure of that size in inches, and axes that fill it; one unit of the axes is one inch."""
    figure = plt.figure(figsize=(width, height), layout="none")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, width)
    axes.set_ylim(0, height)
    axes.axis("off")
    return figure, axes


def tint(colour: str, share: float = 0.25) -> tuple[float, float, float]:
    """`colour` mixed with white, so that dark text on it stays readable; `share` is the part of the colour."""
    red, green, blue = (1 - share * (1 - part) for part in to_rgb(colour))
    return red, green, blue


def fill_of(rank: int) -> str:
    """The rank's colour, light enough for dark text on it."""
    return to_hex(tint(colour_of(rank), 0.5))


def line_of(rank: int) -> str:
    """The rank's colour, dark enough for a thin line on white."""
    red, green, blue = to_rgb(colour_of(rank))
    return to_hex((0.78 * red, 0.78 * green, 0.78 * blue))


def box(
    axes: Axes,
    corner: Point,
    width: float,
    height: float,
    text: str = "",
    number: int | None = None,
    **style: Any,
) -> None:
    """A rounded box with its lower left corner at `corner` and `text` in its middle.

    `number` is the rank, device or chunk that the box belongs to; None draws it white. `style` is for the text.
    """
    colour = QUIET if number is None else colour_of(number)
    face: Colour = "white" if number is None else tint(colour)
    hatch = "" if number is None else hatch_of(number)
    area, shape = (corner, width, height), "round,pad=0,rounding_size=0.05"
    axes.add_patch(FancyBboxPatch(*area, shape, facecolor=face, edgecolor=colour, linewidth=1.2))
    if hatch:
        # A second patch: matplotlib draws a hatch in the edge's colour, and the hatch must be paler than the edge.
        pale = tint(colour, 0.45)
        axes.add_patch(FancyBboxPatch(*area, shape, fill=False, edgecolor=pale, hatch=hatch, linewidth=0))
    if text:
        # The light ground behind the text keeps it readable on a hatch.
        defaults: dict[str, Any] = {"bbox": {"facecolor": face, "edgecolor": "none", "pad": 1.5} if hatch else None}
        label(axes, (corner[0] + width / 2, corner[1] + height / 2), text, **defaults | style)


def arrow(axes: Axes, start: Point, end: Point, colour: str = INK, dash: Dash = "-") -> None:
    """An arrow from `start` to `end`."""
    axes.add_patch(
        FancyArrowPatch(
            start,
            end,
            arrowstyle="-|>",
            mutation_scale=9,
            color=colour,
            linestyle=dash,
            linewidth=1.1,
            shrinkA=0,
            shrinkB=0,
        )
    )


def label(axes: Axes, place: Point, text: str, **style: Any) -> None:
    """Text whose middle is at `place`."""
    defaults: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 9, "color": INK}
    axes.text(*place, text, **defaults | style)


def name_rows(axes: Axes, names: Sequence[str], edge: float = 0.6) -> None:
    """One row per name, from the top down; the axes reach `edge` beyond the middle of the first and the last."""
    axes.set_yticks(range(len(names)), names, color=INK)
    axes.set_ylim(len(names) - 1 + edge, -edge)
    axes.tick_params(axis="y", length=0)


def row(count: int, left: float, right: float, gap: float) -> tuple[list[float], float]:
    """`count` boxes side by side from `left` to `right`: the left edge of each, and their common width."""
    width = (right - left - gap * (count - 1)) / count
    return [left + index * (width + gap) for index in range(count)], width
