"""Many small shapes of few kinds: each kind is defined once and stamped at many places of a figure."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.font_manager import FontProperties
from matplotlib.path import Path
from matplotlib.textpath import TextPath

from distlab.draw.style import INK

Point = tuple[int, float, float]  # matplotlib's code of a path's command, and a place: x, y


@dataclass(frozen=True)
class Shape:
    """One kind of shape, in inches around its place, y upwards.

    name: what it means; shapes of one meaning share it.  outline: the path.  face, edge: colours or "none".
    width: the edge's, in points.  dashed: whether the edge is.  layer: higher layers are drawn above lower ones.
    """

    name: str
    outline: tuple[Point, ...]
    face: str = "none"
    edge: str = "none"
    width: float = 0.0
    dashed: bool = False
    layer: int = 0


@dataclass(frozen=True)
class Stamp:
    """A shape at a place, in inches."""

    shape: Shape
    x: float
    y: float


def rectangle(
    name: str,
    width: float,
    height: float,
    face: str = "none",
    edge: str = "none",
    line: float = 0.0,
    dashed: bool = False,
    layer: int = 0,
) -> Shape:
    """A rectangle whose lower left corner is at its place."""
    corners = ((0, 0), (width, 0), (width, height), (0, height))
    return Shape(name, _closed(corners), face, edge, line, dashed, layer)


def polygon(name: str, corners: Iterable[tuple[float, float]], face: str) -> Shape:
    """A filled polygon with its corners relative to its place."""
    return Shape(name, _closed(corners), face)


@lru_cache(maxsize=1024)
def words(text: str, points: float, colour: str = INK, bold: bool = False, align: str = "center") -> Shape:
    """Text as a shape, centred vertically on the height of a digit; `align` says where its place is: center, left."""
    path, (left, right) = _text_path(text, points, bold)
    dx = 0.0 if align == "left" else -(left + right) / 2
    places = np.asarray(path.vertices) / 72 + (dx, -0.3645 * points / 72)
    codes = np.asarray(path.codes).tolist()
    outline = tuple((code, x, y) for code, (x, y) in zip(codes, places.tolist(), strict=True))
    return Shape(f"text {text}", outline, colour, layer=3)


def width_of(text: str, points: float, bold: bool = False) -> float:
    """How wide the text is, in inches."""
    return _text_path(text, points, bold)[1][1]


def stamp_on(axes: Axes, stamps: Iterable[Stamp], zorder: float = 2) -> None:
    """Draw the stamps on axes of which one unit is one inch: one collection, labelled by its name, for each shape."""
    by_shape: dict[Shape, list[tuple[float, float]]] = defaultdict(list)
    for stamp in stamps:
        by_shape[stamp.shape].append((stamp.x, stamp.y))
    for shape, places in by_shape.items():
        collection = PathCollection(
            [_path(shape)],
            offsets=places,
            offset_transform=axes.transData,
            transform=axes.figure.dpi_scale_trans,
            facecolors=[shape.face],
            edgecolors=[shape.edge],
            linewidths=[shape.width],
            linestyles=[(0, (2.2, 1.2)) if shape.dashed else "solid"],
            label=shape.name,
            zorder=zorder + 0.1 * shape.layer,
            clip_on=False,
            snap=False,  # snapping to pixels makes a thin dash vanish
        )
        axes.add_collection(collection, autolim=False)


def _closed(corners: Iterable[tuple[float, float]]) -> tuple[Point, ...]:
    """A path through the corners and back to the first."""
    lines = [(int(Path.LINETO if number else Path.MOVETO), x, y) for number, (x, y) in enumerate(corners)]
    return (*lines, (int(Path.CLOSEPOLY), 0.0, 0.0))


@lru_cache(maxsize=1024)
def _text_path(text: str, points: float, bold: bool) -> tuple[Path, tuple[float, float]]:
    """The text's path in points, and where it begins and ends in inches."""
    path = TextPath((0, 0), text, size=points, prop=FontProperties(family="DejaVu Sans", weight=700 if bold else 400))
    box = path.get_extents()
    return path, (box.x0 / 72, box.x1 / 72)


@lru_cache(maxsize=1024)
def _path(shape: Shape) -> Path:
    codes, *places = zip(*shape.outline, strict=True)
    return Path(np.transpose(places), codes)
