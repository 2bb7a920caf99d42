"""The pictures of notebook 12: a pipeline, its schedule, a split layer, split attention heads, an image in tiles.

Schedule, products and borders come from runs on the virtual cluster.
Run it from anywhere: python figures/src/12_model_parallelism.py
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

import distlab  # noqa: F401  (selects the course's Keras before anything can import TensorFlow)
from distlab import draw, model_parallel
from distlab.collectives import all_gather, ring_all_reduce
from distlab.draw import HATCHES, INK, QUIET, RANK_COLOURS, arrow, box, canvas, draw_schedule, label, tint
from distlab.simulate import Rank, World

FOLDER = Path(__file__).parents[1]

STAGES = 4
FORWARD, BACKWARD = 1.0, 2.0  # the time of one micro-batch when the batch is cut into STAGES of them


def schedule(micro_batches: int) -> model_parallel.pipelines.Timing:
    """GPipe's schedule for the same batch: with half as many micro-batches each takes twice as long."""
    share = STAGES / micro_batches
    return model_parallel.pipelines.simulate("gpipe", STAGES, micro_batches, 1, FORWARD * share, BACKWARD * share)


def pipeline_schedule(folder: Path) -> None:
    """The same batch whole and in four micro-batches, on one time axis."""
    cases = {parts: schedule(parts) for parts in (1, 4)}
    longest = max(timing.seconds for timing in cases.values())
    figure, strips = plt.subplots(len(cases), 1, sharex=True, figsize=(7.2, 3.9))
    described = []
    for axes, (parts, timing) in zip(strips, cases.items(), strict=True):
        draw_schedule(axes, timing, 6.4 / longest, text=parts > 1)
        name = "the whole batch at once" if parts == 1 else f"{parts} micro-batches"
        numbered = "" if parts == 1 else " (numbers)"
        took = f"{timing.seconds:g} units of time"
        bubble = f"{100 * timing.bubble_fraction:.0f} %"
        axes.set_title(f"{name}{numbered}: {took}, bubble (grey) {bubble}", fontsize=10)
        described.append(f"With {name} it takes {took}, and the devices wait {bubble} of them.")
    strips[-1].set_xlim(0, longest + 0.2)
    strips[-1].set_xticks(np.arange(0, longest + 1, 6))
    text = "units of time: forward of one of four micro-batches on one stage; backward takes two"
    strips[-1].set_xlabel(text, fontsize=9)
    draw.save(
        figure,
        folder / "12_pipeline_schedule.svg",
        f"GPipe's schedule on {STAGES} stages, one row a stage, for the same batch. {' '.join(described)} Forward "
        f"passes run from stage 0 to stage {STAGES - 1}, each starting when the stage before is done with the same "
        f"micro-batch; then backward passes run from stage {STAGES - 1} to stage 0.",
    )


INPUT = np.array([[1, 2, 0, 1], [3, 1, 2, 0]])
WEIGHTS = np.array([[1, 0, 2, 1], [0, 3, 1, 2], [2, 1, 0, 1], [1, 2, 3, 0]])
PARTS = (slice(0, 2), slice(2, 4))  # what is on device 0 and on device 1


class Product(NamedTuple):
    """What each device computes, and what all have after the collective."""

    partial: list[np.ndarray]
    whole: list[np.ndarray]


def by_columns() -> Product:
    """Each device has half of the columns of W and computes half of the columns of Y; an all-gather joins them."""

    async def layer(rank: Rank) -> tuple[np.ndarray, np.ndarray]:
        partial = INPUT @ WEIGHTS[:, PARTS[rank.index]]
        return partial, (await all_gather(rank, partial.T.copy())).T

    return Product(*map(list, zip(*World(len(PARTS)).run(layer).results, strict=True)))


def by_rows() -> Product:
    """Each device has half of the rows of W and of the columns of X; an all-reduce adds up the partial products."""

    async def layer(rank: Rank) -> tuple[np.ndarray, np.ndarray]:
        partial = INPUT[:, PARTS[rank.index]] @ WEIGHTS[PARTS[rank.index]]
        return partial, await ring_all_reduce(rank, partial)

    return Product(*map(list, zip(*World(len(PARTS)).run(layer).results, strict=True)))


CELL = 0.27
Owner = Callable[[int, int], int | None]


def tensor_split(folder: Path) -> None:
    """Y = XW on two devices, W cut by columns above and by rows below."""
    columns, rows = by_columns(), by_rows()
    figure, axes = canvas(7.2, 4.2)

    def of_column(_: int, column: int) -> int:
        return column // 2

    def of_row(line: int, _: int) -> int:
        return line // 2

    def of_all(_: int, __: int) -> None:
        return None

    lefts = [0.2, 1.73, 3.26, 4.59, 5.92]
    middle = 3.1
    label(axes, (0.2, 4.02), "W by columns: each device makes half of the columns of Y", ha="left", fontweight="bold")
    _matrix(axes, lefts[0], middle, INPUT, of_all, "X: on both devices")
    _between(axes, lefts[0], lefts[1], middle, "×")
    _matrix(axes, lefts[1], middle, WEIGHTS, of_column, "W")
    _between(axes, lefts[1], lefts[2], middle, "=")
    _matrix(axes, lefts[2], middle, np.hstack(columns.partial), of_column, "Y: half on each device")
    arrow(axes, (lefts[2] + 4 * CELL + 0.12, middle), (lefts[4] - 0.12, middle))
    label(axes, ((lefts[2] + 4 * CELL + lefts[4]) / 2, middle + 0.16), "all-gather, if both need Y", fontsize=8)
    _matrix(axes, lefts[4], middle, columns.whole[0], of_all, "Y: on both devices")

    middle = 1.12
    label(axes, (0.2, 2.07), "W by rows: each device makes a part of every sum in Y", ha="left", fontweight="bold")
    _matrix(axes, lefts[0], middle, INPUT, of_column, "X: half on each")
    _between(axes, lefts[0], lefts[1], middle, "×")
    _matrix(axes, lefts[1], middle, WEIGHTS, of_row, "W")
    _between(axes, lefts[1], lefts[2], middle, "=")
    _matrix(axes, lefts[2], middle, rows.partial[0], lambda *_: 0, "part of device 0")
    _between(axes, lefts[2], lefts[3], middle, "+")
    _matrix(axes, lefts[3], middle, rows.partial[1], lambda *_: 1, "part of device 1")
    _between(axes, lefts[3], lefts[4], middle, "=")
    _matrix(axes, lefts[4], middle, rows.whole[0], of_all, "Y: on both devices")
    label(axes, ((lefts[3] + lefts[4] + 4 * CELL) / 2, middle - 0.62), "the sum is an all-reduce", fontsize=8)

    _legend(axes, (0.2, 1.6, 3.0), 0.12)
    draw.save(
        figure,
        folder / "12_tensor_split.svg",
        "The matrix product Y = XW of a layer on two devices, with numbers. Above, W is cut by columns: both devices "
        "have all of X, device 0 has columns 0 and 1 of W and computes columns 0 and 1 of Y, device 1 the others; an "
        "all-gather joins them. Below, W is cut by rows: device 0 has columns 0 and 1 of X and rows 0 and 1 of W, "
        "device 1 the others; each computes a partial product of the full size, and an all-reduce adds the two. Both "
        f"give Y with the rows {_listed(columns.whole[0])}.",
    )


def _matrix(
    axes: Axes, left: float, middle: float, matrix: np.ndarray, owner: Owner, title: str, side: float = CELL
) -> None:
    """A matrix with its vertical middle at `middle`; `owner` says on which device each element is."""
    top = middle + len(matrix) * side / 2
    for line, values in enumerate(matrix):
        for column, value in enumerate(values):
            place = (left + column * side, top - (line + 1) * side)
            _cell(axes, place, str(value), owner(line, column), side)
    label(axes, (left + matrix.shape[1] * side / 2, top + 0.13), title, fontsize=8)


def _between(axes: Axes, left: float, right: float, middle: float, sign: str) -> None:
    label(axes, ((left + 4 * CELL + right) / 2, middle), sign, fontsize=12)


def _cell(axes: Axes, corner: tuple[float, float], text: str, owner: int | None, side: float = CELL) -> None:
    colour = QUIET if owner is None else RANK_COLOURS[owner]
    face = "white" if owner is None else tint(colour, 0.3)
    area = (corner, side, side)
    axes.add_patch(Rectangle(*area, facecolor=face, edgecolor="none"))
    if owner is not None and HATCHES[owner]:
        axes.add_patch(Rectangle(*area, fill=False, edgecolor=tint(colour, 0.5), hatch=HATCHES[owner], linewidth=0))
    axes.add_patch(Rectangle(*area, fill=False, edgecolor=colour, linewidth=0.8))
    if text:
        ground = {"facecolor": face, "edgecolor": "none", "pad": 0.8}
        label(axes, (corner[0] + side / 2, corner[1] + side / 2), text, fontsize=8, bbox=ground)


def _legend(axes: Axes, lefts: Sequence[float], bottom: float) -> None:
    for owner, left, text in zip((0, 1, None), lefts, ("on device 0", "on device 1", "on both"), strict=True):
        _cell(axes, (left, bottom), "", owner)
        label(axes, (left + 0.37, bottom + CELL / 2), text, ha="left", fontsize=8)


def _listed(matrix: np.ndarray) -> str:
    return " and ".join(", ".join(map(str, values)) for values in matrix)


HEADS, TOKENS, SMALL = 4, 3, 0.2


def attention_heads(folder: Path) -> None:
    """Attention on two devices: the heads are columns of W_Q, W_K and W_V, and rows of W_O."""
    figure, axes = canvas(7.2, 3.75)
    owners = [head * len(PARTS) // HEADS for head in range(HEADS)]
    by_head = np.tile(np.arange(HEADS), (HEADS, 1))  # an element of a matrix shows its head
    nothing = np.full((TOKENS, HEADS), "")
    lefts, middle = (0.15, 1.3, 2.5, 4.05, 5.15, 6.25), 1.95

    def of_column(_: int, column: int) -> int:
        return owners[column]

    _matrix(axes, lefts[0], middle, nothing, lambda *_: None, "X: all tokens", SMALL)
    for name, height in (("Q", 1.05), ("K", 0), ("V", -1.05)):
        _matrix(axes, lefts[1], middle + height, by_head, of_column, f"$W_{name}$", SMALL)
    for head, owner in enumerate(owners):
        bottom = middle + 0.62 - 0.47 * head
        box(axes, (lefts[2], bottom), 1.2, 0.36, f"attention of head {head}", owner, fontsize=8)
    _matrix(axes, lefts[3], middle, by_head[:TOKENS], of_column, "outputs of heads", SMALL)
    _matrix(axes, lefts[4], middle, by_head.T, lambda line, _: owners[line], "$W_O$", SMALL)
    _matrix(axes, lefts[5], middle, nothing, lambda *_: None, "Y: all tokens", SMALL)
    for start in (2.16, 3.76):
        arrow(axes, (start, middle), (start + 0.26, middle))
    for x, sign in ((1.125, "×"), (5, "×"), (6.1, "=")):
        label(axes, (x, middle), sign, fontsize=12)
    texts = (1.7, 0.3, "by columns"), (3.1, 1.0, "no message"), (5.55, 1.35, "by rows")
    for x, y, text in (*texts, (6.65, 1.35, "all-reduce of\ntwo partial sums")):
        label(axes, (x, y), text, fontsize=8, fontweight="bold")
    _legend(axes, (3.6, 4.95, 6.2), 0.17)
    draw.save(
        figure,
        folder / "12_attention_heads.svg",
        f"Attention with {HEADS} heads on two devices. Both devices have all tokens X. The matrices of queries, keys "
        "and values are cut by columns: device 0 has the columns of heads 0 and 1, device 1 those of heads 2 and 3. "
        "Each device computes the attention of its heads without a message. The output matrix is cut by rows, so "
        "each device gets a partial sum of the full size, and one all-reduce adds the two.",
    )


TILES = 2  # in each direction
TILE = 4  # pixels in each direction
PIXEL = 0.2


async def halo_exchange(rank: Rank, tile: np.ndarray) -> np.ndarray:
    """The tile of rank r, at row r // 2 and column r % 2 of the image, with one pixel of its neighbours on each side.

    First columns go left and right, then rows, which by now are longer, up and down: so the corners arrive as well.
    """
    line, column = divmod(rank.index, TILES)
    for axis, number, stride in ((1, column, 1), (0, line, TILES)):
        if number == 0:
            neighbour = rank.index + stride
            border = np.take(tile, [-1], axis)
        else:
            neighbour = rank.index - stride
            border = np.take(tile, [0], axis)
        received = await rank.exchange(neighbour, border, neighbour)
        tile = np.concatenate([tile, received] if number == 0 else [received, tile], axis)
    return tile


def tiles_with_halo(image: np.ndarray) -> list[np.ndarray]:
    """Cut an image of 8 × 8 pixels into four tiles and exchange their borders."""
    tiles = [tile for band in np.split(image, TILES, 0) for tile in np.split(band, TILES, 1)]
    return World(TILES**2).run(halo_exchange, tiles).results


def owners() -> np.ndarray:
    """Which rank has each pixel of the image."""
    side = np.arange(TILES * TILE) // TILE
    return TILES * side[:, None] + side[None, :]


def spatial_split(folder: Path) -> None:
    """An image in four tiles, and the border of each that comes from its neighbours."""
    figure, axes = canvas(7.2, 3.6)
    size = TILES * TILE * PIXEL
    label(axes, (0.3, 3.4), "image of 8 × 8 pixels, one tile per rank", ha="left", fontweight="bold")
    for (line, column), owner in np.ndenumerate(owners()):
        _cell(axes, (0.3 + column * PIXEL, 2.5 - (line + 1) * PIXEL), "", int(owner), PIXEL)
    for rank in range(TILES**2):
        line, column = divmod(rank, TILES)
        _tile_name(axes, 0.3 + (column + 0.5) * TILE * PIXEL, 2.5 - (line + 0.5) * TILE * PIXEL, rank)
    arrow(axes, (0.3 + size + 0.2, 2.5 - size / 2), (0.3 + size + 0.9, 2.5 - size / 2))
    label(axes, (0.3 + size + 0.55, 2.5 - size / 2 + 0.26), "cut and\nexchange", fontsize=8)
    text = "a 3 × 3 convolution needs one pixel\nall round: at the cut it lies on another rank"
    label(axes, (0.3, 0.45), text, ha="left", fontsize=8, linespacing=1.3)

    label(axes, (3.3, 3.4), "each tile with its halo, the neighbours' border", ha="left", fontweight="bold")
    side, gap = (TILE + 1) * PIXEL, 0.7
    for rank, tile in enumerate(tiles_with_halo(owners())):
        line, column = divmod(rank, TILES)
        left, top = 3.4 + column * (side + gap), 3.15 - line * (side + gap)
        for (y, x), owner in np.ndenumerate(tile):
            text = "" if owner == rank else str(owner)
            _cell(axes, (left + x * PIXEL, top - (y + 1) * PIXEL), text, int(owner), PIXEL)
        own = (left + column * PIXEL, top - (TILE + line) * PIXEL)
        axes.add_patch(Rectangle(own, TILE * PIXEL, TILE * PIXEL, fill=False, edgecolor=INK, linewidth=1.6))
        _tile_name(axes, own[0] + TILE * PIXEL / 2, own[1] + TILE * PIXEL / 2, rank)
    both = {"arrowstyle": "<|-|>", "shrinkA": 0, "shrinkB": 0}
    for number in range(TILES):
        y = 3.15 - side / 2 - number * (side + gap)
        axes.annotate("", (3.4 + side + 0.08, y), (3.4 + side + gap - 0.08, y), arrowprops=both)
        label(axes, (3.4 + side + gap / 2, y + 0.14), "1.", fontsize=8)
        x = 3.4 + side / 2 + number * (side + gap)
        axes.annotate("", (x, 3.15 - side - 0.08), (x, 3.15 - side - gap + 0.08), arrowprops=both)
        label(axes, (x + 0.13, 3.15 - side - gap / 2), "2.", fontsize=8)
    text = "1. columns\n2. rows, with\nthe corners\n\nthick frame:\nown pixels\n\nnumbers: the\nhalo's owner"
    label(axes, (6.3, 1.8), text, ha="left", fontsize=8, linespacing=1.3)
    draw.save(
        figure,
        folder / "12_spatial_split.svg",
        "One image of 8 × 8 pixels split among four ranks, a tile of 4 × 4 pixels each. A 3 × 3 convolution needs "
        "one pixel all round; at the cuts it lies on another rank. So the ranks exchange borders: first columns with "
        "the neighbour at the side, then rows, which carry the corners along, with the neighbour above or below. "
        "Afterwards each rank holds 5 × 5 pixels: its own 4 × 4 and a halo of nine, four from each of two neighbours "
        "and the corner from the third.",
    )


def _tile_name(axes: Axes, x: float, y: float, rank: int) -> None:
    ground = {"facecolor": "white", "edgecolor": "none", "pad": 1.2}
    label(axes, (x, y), f"rank {rank}", fontsize=8.5, bbox=ground)


def main(folder: Path = FOLDER) -> None:
    """Draw all of them into a folder."""
    draw.apply_style()
    pipeline_schedule(folder)
    tensor_split(folder)
    attention_heads(folder)
    spatial_split(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
