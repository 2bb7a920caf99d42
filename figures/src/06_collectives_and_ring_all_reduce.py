"""The pictures of chapter 06: collectives before and after, gradients reduced, the ring, overlap.

Their contents come from runs on the virtual cluster.
Run it from anywhere: python figures/src/06_collectives_and_ring_all_reduce.py
"""

import sys
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

import distlab  # noqa: F401  (selects the course's Keras before anything can import TensorFlow)
from distlab import collectives, costs, draw
from distlab.draw import HATCHES, INK, RANK_COLOURS, arrow, box, canvas, label, row, tint
from distlab.simulate import Contributions, Network, Rank, World

FOLDER = Path(__file__).parents[1]
RANKS = 4
Program = Callable[..., Coroutine]


@dataclass(frozen=True)
class Collective:
    """A collective to draw: its name, the program that runs, and in a few words what it gives to whom."""

    name: str
    program: Program
    gives: str

    @property
    def title(self) -> str:
        """The name as it is written in a text."""
        return self.name.replace("_", "-")


COLLECTIVES = (
    Collective("broadcast", collectives.broadcast, "the root's array to every rank"),
    Collective("reduce", collectives.reduce, "the sum of all arrays to the root"),
    Collective("scatter", collectives.scatter, "one chunk of the root's to each rank"),
    Collective("gather", collectives.gather, "every rank's chunk to the root"),
    Collective("all_gather", collectives.all_gather, "every rank's chunk to every rank"),
    Collective("reduce_scatter", collectives.reduce_scatter, "one chunk of the sum to each rank"),
    Collective("all_reduce", collectives.ring_all_reduce, "the sum of all arrays to every rank"),
    Collective("all_to_all", collectives.all_to_all, "chunk j of rank i to rank j"),
)


@dataclass(frozen=True)
class Cell:
    """A number that a rank holds, and the ranks whose numbers are in it."""

    number: int
    ranks: tuple[int, ...]


Rows = list[list[Cell | None]]


def number_of(element: Contributions) -> int:
    """The number that chunk c of rank r begins with, (c + 1)·10^r: a sum's digits then show who is in it."""
    return sum((chunk + 1) * 10**rank * times for (rank, chunk), times in element.counts.items())


def before_and_after(collective: Collective) -> tuple[Rows, Rows]:
    """What each rank (row) holds of each chunk (column), None for nothing, before and after the collective.

    Two runs: one with numbers, one with arrays that remember whose shares have been added to them.
    """
    traced = draw.trace(collective.program, RANKS, collective=collective.name)
    inputs = traced.task.inputs()
    numbers = [None if array is None else np.array([number_of(element) for element in array]) for array in inputs]
    run = World(RANKS).run(collective.program, numbers)
    return _rows(inputs, numbers), _rows(traced.results, run.results)


def _rows(shares: Sequence[np.ndarray | None], numbers: Sequence[np.ndarray | None]) -> Rows:
    rows: Rows = []
    for of_rank, values in zip(shares, numbers, strict=True):
        cells: list[Cell | None] = [None] * RANKS
        if of_rank is not None:
            for place, (share, value) in enumerate(zip(of_rank, values, strict=True)):
                # A whole array is drawn in its own order; a chunk alone is drawn in its chunk's column.
                (chunk,) = {place} if len(of_rank) == RANKS else share.positions
                cells[chunk] = Cell(int(value), tuple(share.ranks))
        rows.append(cells)
    return rows


CELL, CELL_HEIGHT, CELL_GAP = 0.34, 0.22, 0.03
GRID = RANKS * CELL + (RANKS - 1) * CELL_GAP  # the width of what all ranks hold
PANEL_WIDTH, PANEL_HEIGHT = 3.78, 1.5
LEFT_OF_BEFORE, BETWEEN = 0.5, 0.3


def four_collectives(file: Path, chosen: Sequence[Collective]) -> None:
    """A panel for each: what each rank (row) holds of each chunk (column) before, on the left, and after."""
    figure, axes = canvas(2 * PANEL_WIDTH, 2 * PANEL_HEIGHT + 0.25)
    described = ["Collectives on four ranks, a row for each rank and a column for each chunk, before and after."]
    for number, collective in enumerate(chosen):
        left, top = number % 2 * PANEL_WIDTH, (2 - number // 2) * PANEL_HEIGHT + 0.2
        before, after = before_and_after(collective)
        label(axes, (left + 0.1, top - 0.12), collective.title, ha="left", fontweight="bold")
        first = left + LEFT_OF_BEFORE
        _holdings(axes, first, top - 0.28, before)
        _holdings(axes, first + GRID + BETWEEN, top - 0.28, after)
        middle = top - 0.28 - (RANKS * (CELL_HEIGHT + CELL_GAP) - CELL_GAP) / 2
        arrow(axes, (first + GRID + 0.05, middle), (first + GRID + BETWEEN - 0.05, middle))
        for rank in range(RANKS):
            y = top - 0.28 - rank * (CELL_HEIGHT + CELL_GAP) - CELL_HEIGHT / 2
            label(axes, (left + 0.27, y), f"rank {rank}", fontsize=8)
        held = f"Before: {_in_words(before)}. After: {_in_words(after)}."
        described.append(f"{collective.title.capitalize()}: {collective.gives}. {held}")
    text = "rank 0 has ones, rank 1 tens, rank 2 hundreds, rank 3 thousands; dotted: nothing"
    label(axes, (0.1, 0.1), text, ha="left", color="#5A5A5A", fontsize=8)
    draw.save(figure, file, " ".join(described))


def _holdings(axes: Axes, left: float, top: float, rows: Rows) -> None:
    for rank, cells in enumerate(rows):
        for chunk, cell in enumerate(cells):
            y = top - rank * (CELL_HEIGHT + CELL_GAP) - CELL_HEIGHT
            _draw_cell(axes, (left + chunk * (CELL + CELL_GAP), y), cell)


def _draw_cell(axes: Axes, corner: tuple[float, float], cell: Cell | None) -> None:
    """A number on the colours and hatches of the ranks whose shares it holds, side by side; empty: a dotted frame."""
    if cell is None:
        axes.add_patch(Rectangle(corner, CELL, CELL_HEIGHT, fill=False, edgecolor="#B0B0B0", linestyle=":"))
        return
    width = CELL / len(cell.ranks)
    for place, rank in enumerate(cell.ranks):
        area = ((corner[0] + place * width, corner[1]), width, CELL_HEIGHT)
        axes.add_patch(Rectangle(*area, facecolor=tint(RANK_COLOURS[rank], 0.3), linewidth=0))
        pale = tint(RANK_COLOURS[rank], 0.55)
        axes.add_patch(Rectangle(*area, fill=False, edgecolor=pale, hatch=HATCHES[rank], linewidth=0))
    edge = RANK_COLOURS[cell.ranks[0]] if len(cell.ranks) == 1 else INK
    axes.add_patch(Rectangle(corner, CELL, CELL_HEIGHT, fill=False, edgecolor=edge, linewidth=1.2))
    ground = {"facecolor": "white", "edgecolor": "none", "pad": 0.6, "alpha": 0.9}
    middle = (corner[0] + CELL / 2, corner[1] + CELL_HEIGHT / 2)
    label(axes, middle, str(cell.number), fontsize=8, bbox=ground)


def _in_words(rows: Rows) -> str:
    texts = [", ".join(str(cell.number) for cell in of_rank if cell) or "nothing" for of_rank in rows]
    if len(set(texts)) == 1:
        return f"every rank holds {texts[0]}"
    return "; ".join(f"rank {rank} holds {text}" for rank, text in enumerate(texts))


SHARDS = ((1.0, 1.0), (1.0, 2.0), (2.0, 2.0), (1.0, 3.0))  # the x of each replica; the y are 3x
WEIGHT, RATE = 1.0, 0.1


def gradient(weight: float, inputs: np.ndarray) -> float:
    """The gradient of the mean of (wx − 3x)² by w."""
    return float(np.mean(2 * inputs * (weight * inputs - 3 * inputs)))


async def training_step(rank: Rank, shard: np.ndarray) -> dict[str, float]:
    """What one replica does in a step of data-parallel training."""
    own = gradient(WEIGHT, shard)
    total = await collectives.ring_all_reduce(rank, np.array([own]))
    mean = float(total[0]) / rank.size
    return {"own": own, "total": float(total[0]), "mean": mean, "weight": WEIGHT - RATE * mean}


def gradient_reduction(folder: Path) -> None:
    """One step with numbers: own gradients, their mean, the same update everywhere."""
    replicas = World(RANKS).run(training_step, [np.array(shard) for shard in SHARDS]).results
    first = replicas[0]
    whole = WEIGHT - RATE * gradient(WEIGHT, np.array(SHARDS).ravel())
    figure, axes = canvas(7.2, 4.3)
    lefts, width = row(RANKS, 0.2, 7.0, 0.3)
    label(axes, (3.6, 4.12), r"model $w x$, truth $3x$, loss: the mean of $(w x - 3 x)^2$ over the batch")
    for rank, (left, replica) in enumerate(zip(lefts, replicas, strict=True)):
        middle = left + width / 2
        samples = ", ".join(f"{x:g}" for x in SHARDS[rank])
        box(axes, (left, 3.4), width, 0.5, f"shard {rank}\n$x$ = {samples}", rank)
        arrow(axes, (middle, 3.4), (middle, 3.15))
        box(axes, (left, 2.65), width, 0.5, f"replica {rank}\n$w$ = {WEIGHT:g}", rank)
        arrow(axes, (middle, 2.65), (middle, 2.4))
        box(axes, (left, 1.95), width, 0.45, f"$g_{rank}$ = {_signed(replica['own'])}", rank)
        arrow(axes, (middle, 1.95), (middle, 1.7))
        arrow(axes, (middle, 1.15), (middle, 0.9))
        text = f"$w$ ← {WEIGHT:g} − {RATE:g} · ({_signed(replica['mean'])})\n= {replica['weight']:g}"
        box(axes, (left, 0.4), width, 0.5, text, rank)
    owns = " ".join(_signed(replica["own"]) for replica in replicas)
    text = f"all-reduce: the sum, {owns} = {_signed(first['total'])}, on every replica;\n"
    text += f"divided by the {RANKS} replicas: the mean gradient $g$ = {_signed(first['mean'])}"
    box(axes, (0.2, 1.15), 6.8, 0.55, text)
    label(axes, (3.6, 0.18), f"one device with the whole batch of {np.size(SHARDS)}: $w$ = {whole:g}", color="#5A5A5A")
    draw.save(
        figure,
        folder / "06_gradient_reduction.svg",
        f"Gradient reduction in one data-parallel step with numbers. Four replicas begin with the weight {WEIGHT:g}; "
        f"from their shards they compute the gradients {', '.join(_signed(replica['own']) for replica in replicas)}. "
        f"An all-reduce gives each of them the sum {_signed(first['total'])}, that is the mean "
        f"{_signed(first['mean'])}. All make the same update to {first['weight']:g}, which is what one device with "
        "the whole batch gets.",
    )


def _signed(value: float) -> str:
    return f"{value:g}".replace("-", "−")


GRADIENTS, BACKWARD = 48, 125  # how many, and the microseconds of the backward pass for each
BYTES, OVERLAP_RANKS = 50_000, 8
NETWORK = Network(latency=5e-6, seconds_per_byte=1e-9)
WAYS = {
    GRADIENTS: "one all-reduce after the backward pass",
    1: "one all-reduce for each gradient",
    4: "buckets of four gradients",
}


def overlapped(per_bucket: int) -> list[tuple[float, float]]:
    """When the all-reduce of each bucket starts and ends, in µs: when it is full and the one before it has ended."""
    cost = costs.all_reduce("ring", OVERLAP_RANKS, per_bucket * BYTES)
    duration = 1e6 * float(cost.seconds(NETWORK.latency, NETWORK.seconds_per_byte))
    spans: list[tuple[float, float]] = []
    for ready in range(per_bucket, GRADIENTS + 1, per_bucket):
        start = max(float(ready * BACKWARD), spans[-1][1] if spans else 0.0)
        spans.append((start, start + duration))
    return spans


def overlap(folder: Path) -> None:
    """The backward pass above, the all-reduces below it, for three sizes of a bucket."""
    figure, panels = plt.subplots(len(WAYS), 1, sharex=True, figsize=(7.2, 4.0))
    described = [f"A backward pass of {GRADIENTS * BACKWARD:,} µs and its all-reduces, three times."]
    for axes, (per_bucket, name) in zip(panels, WAYS.items(), strict=True):
        spans, width = overlapped(per_bucket), per_bucket * BACKWARD
        backward = [(start, width) for start in range(0, GRADIENTS * BACKWARD, width)]
        for number, bars in enumerate((backward, [(start, end - start) for start, end in spans])):
            colour = RANK_COLOURS[number]
            axes.broken_barh(
                bars, (0.65 - number, 0.7), facecolor=tint(colour), edgecolor=colour, hatch=HATCHES[number]
            )
        axes.set_yticks([1, 0], ["backward pass", "all-reduces"])
        axes.set_title(f"{name}: {spans[-1][1]:,.0f} µs", fontsize=10)
        axes.axvline(GRADIENTS * BACKWARD, color=INK, linestyle=":")
        described.append(f"{name.capitalize()}: the last of {len(spans)} ends at {spans[-1][1]:,.0f} µs.")
    panels[-1].set_xlabel("µs since the backward pass began; dotted: its end")
    panels[-1].xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    draw.save(figure, folder / "06_overlap.svg", " ".join(described))


def main(folder: Path = FOLDER) -> None:
    """Draw all of them into a folder."""
    draw.apply_style()
    four_collectives(folder / "06_collectives_with_root.svg", COLLECTIVES[:4])
    four_collectives(folder / "06_collectives_without_root.svg", COLLECTIVES[4:])
    gradient_reduction(folder)
    overlap(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
