"""The pictures of chapter 06: collectives before and after, gradients reduced, ring, three reductions, overlap.

Their contents come from runs on the virtual cluster.
Run it from anywhere: python figures/src/06_collectives_and_ring_all_reduce.py
"""

import re
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
from distlab.draw import HATCHES, INK, MARKERS, QUIET, RANK_COLOURS, arrow, box, canvas, label, row, tint
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


def all_collectives(folder: Path) -> None:
    """A panel for each: on the left what each rank (row) holds of each chunk (column) before, on the right after."""
    lines = -(-len(COLLECTIVES) // 2)
    figure, axes = canvas(2 * PANEL_WIDTH, lines * PANEL_HEIGHT + 0.25)
    described = ["Collectives on four ranks, a row for each rank and a column for each chunk, before and after."]
    for number, collective in enumerate(COLLECTIVES):
        left, top = number % 2 * PANEL_WIDTH, (lines - number // 2) * PANEL_HEIGHT + 0.2
        before, after = before_and_after(collective)
        label(axes, (left + 0.1, top - 0.12), collective.title, ha="left", fontweight="bold")
        first = left + LEFT_OF_BEFORE
        _holdings(axes, first, top - 0.28, before)
        _holdings(axes, first + GRID + BETWEEN, top - 0.28, after)
        middle = top - 0.28 - (RANKS * (CELL_HEIGHT + CELL_GAP) - CELL_GAP) / 2
        arrow(axes, (first + GRID + 0.05, middle), (first + GRID + BETWEEN - 0.05, middle))
        for rank in range(RANKS):
            y = top - 0.28 - rank * (CELL_HEIGHT + CELL_GAP) - CELL_HEIGHT / 2
            style = {"color": RANK_COLOURS[rank], "marker": MARKERS[rank], "linestyle": "", "markersize": 5}
            axes.plot([left + 0.19], [y], **style)
            label(axes, (left + 0.35, y), str(rank), fontsize=8)
        described.append(f"{collective.title.capitalize()}: {collective.gives}. Before: {_in_words(before)}. ")
        described[-1] += f"After: {_in_words(after)}."
    text = "rank 0 has ones, rank 1 tens, rank 2 hundreds, rank 3 thousands; dotted: nothing"
    label(axes, (0.1, 0.1), text, ha="left", color="#5A5A5A", fontsize=8)
    draw.save(figure, folder / "06_collectives.svg", " ".join(described))


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


ENLARGED = 1.25


def ring_steps(folder: Path) -> None:
    """The first half of the ring all-reduce as a step strip."""
    traced = draw.trace(collectives.ring_all_reduce, RANKS)
    steps = list(range(RANKS))
    described = re.findall(r"(?=Step (\d+))(Step [^.]*\.)", traced.describe())
    texts = [text for step, text in described if int(step) in steps[1:]]
    title = "Reduce-scatter, the first half of the ring all-reduce: sums grow as they travel."
    file = folder / "06_ring_reduce_scatter_steps.svg"
    draw.save(traced.strip(steps), file, " ".join([title, *texts]))
    _enlarge(file)


def _enlarge(file: Path) -> None:
    """Show a picture larger than it was drawn: half a run is narrow, and the strip's smallest text has 6.5 points."""
    text = file.read_text()
    size = re.search(r'width="([\d.]+)pt" height="([\d.]+)pt"', text)
    width, height = (ENLARGED * float(points) for points in size.groups())
    file.write_text(text.replace(size[0], f'width="{width:.6f}pt" height="{height:.6f}pt"', 1))


REDUCTIONS = {
    "ReductionToOneDevice": collectives.naive_all_reduce,
    "HierarchicalCopyAllReduce": collectives.tree_all_reduce,
    "NcclAllReduce (ring)": collectives.ring_all_reduce,
}
DEVICES = ((0.45, 1.95), (1.75, 1.95), (1.75, 0.85), (0.45, 0.85))  # the middle of each device, around the square
DEVICE = 0.23  # half the side of its box


@dataclass(frozen=True)
class Reduction:
    """How a reduction runs: its steps by (source, to), their number, and its time in whole gradients on one link."""

    steps: dict[tuple[int, int], list[int]]
    last: int
    gradients: float


def reduction(program: Program) -> Reduction:
    """Run an all-reduce on four devices, once for its steps and once for its time when latency costs nothing."""
    traced = draw.trace(program, RANKS)
    by_link: dict[tuple[int, int], list[int]] = {}
    for message in traced.messages:
        by_link.setdefault((message.source, message.to), []).append(message.step)
    arrays = [np.ones(RANKS)] * RANKS
    run = World(RANKS, Network(latency=0.0, seconds_per_byte=1 / arrays[0].nbytes)).run(program, arrays)
    return Reduction(by_link, traced.last, run.elapsed)


def reductions(folder: Path) -> None:
    """Who sends to whom in which step, for TensorFlow's three cross-device reductions."""
    figure, axes = canvas(7.2, 3.0)
    described = ["Three ways to reduce gradients between four devices, with the steps on the arrows."]
    for panel, (name, program) in enumerate(REDUCTIONS.items()):
        left = 0.1 + panel * 2.4
        way = reduction(program)
        label(axes, (left + 1.1, 2.8), name, fontweight="bold")
        if program is collectives.tree_all_reduce:
            for bottom in (1.58, 0.48):
                frame = {"edgecolor": QUIET, "linestyle": "--", "linewidth": 0.9}
                axes.add_patch(Rectangle((left + 0.1, bottom), 2.0, 0.74, fill=False, **frame))
        for link, steps in way.steps.items():
            _link(axes, left, link, steps, both_ways=link[::-1] in way.steps)
        for device, (x, y) in enumerate(DEVICES):
            box(axes, (left + x - DEVICE, y - DEVICE), 2 * DEVICE, 2 * DEVICE, str(device), device)
        time = f"as long as {way.gradients:g} gradients on one link"
        label(axes, (left + 1.1, 0.22), f"{way.last} steps,\n{time}", fontsize=8)
        sends = "; ".join(
            f"device {source} sends to device {to} in {_steps(steps)}" for (source, to), steps in way.steps.items()
        )
        described.append(f"{name}: {sends}. {way.last} steps, {time}.")
    draw.save(figure, folder / "06_reductions.svg", " ".join(described))


def _link(axes: Axes, left: float, link: tuple[int, int], steps: list[int], both_ways: bool) -> None:
    (x0, y0), (x1, y1) = DEVICES[link[0]], DEVICES[link[1]]
    along = np.array([x1 - x0, y1 - y0])
    along /= np.linalg.norm(along)
    across = np.array([-along[1], along[0]])
    # The two directions of a link run side by side.
    shift = 0.09 * across if both_ways else 0 * across
    room = DEVICE / np.abs(along).max() + 0.03
    start = np.array([left + x0, y0]) + room * along + shift
    end = np.array([left + x1, y1]) - room * along + shift
    arrow(axes, tuple(start), tuple(end), colour=RANK_COLOURS[link[0]])
    middle = start + 0.42 * (end - start)
    ground = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}
    label(axes, tuple(middle), f"{steps[0]}–{steps[-1]}" if len(steps) > 1 else str(steps[0]), fontsize=8, bbox=ground)


def _steps(steps: list[int]) -> str:
    return f"steps {steps[0]} to {steps[-1]}" if len(steps) > 1 else f"step {steps[0]}"


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
        spans = overlapped(per_bucket)
        width = per_bucket * BACKWARD
        for number, (start, end) in enumerate(spans):
            places = ((1, number * width, width, 0), (0, start, end - start, 1))
            for y, left, length, colour in places:
                style = {"facecolor": tint(RANK_COLOURS[colour], 0.35), "edgecolor": RANK_COLOURS[colour]}
                axes.barh(y, length, left=left, height=0.7, hatch=HATCHES[colour], **style)
        axes.set_yticks([1, 0], ["backward pass", "all-reduces"])
        axes.set_title(f"{name}: {spans[-1][1]:,.0f} µs", fontsize=10)
        axes.axvline(GRADIENTS * BACKWARD, color=INK, linewidth=0.8, linestyle=":")
        described.append(
            f"{name.capitalize()}: {len(spans)} of {spans[0][1] - spans[0][0]:,.0f} µs; the first begins at "
            f"{spans[0][0]:,.0f} µs, the last ends at {spans[-1][1]:,.0f} µs."
        )
    panels[-1].set_xlabel("µs since the backward pass began; dotted: its end")
    panels[-1].xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    draw.save(figure, folder / "06_overlap.svg", " ".join(described))


def main(folder: Path = FOLDER) -> None:
    """Draw all of them into a folder."""
    draw.apply_style()
    all_collectives(folder)
    gradient_reduction(folder)
    ring_steps(folder)
    reductions(folder)
    overlap(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
