"""Time lines of runs in virtual time: what each rank of a program does, and each stage of a pipeline."""

from collections.abc import Mapping
from typing import Any, Literal

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from distlab.draw.diagram import label, line_of, name_rows, tint
from distlab.draw.style import QUIET, colour_of
from distlab.model_parallel.pipelines import FORWARD, Timing, Work
from distlab.simulate import Run

Span = tuple[float, float]
Activity = Literal["sending", "receiving", "reducing", "computing", "waiting"]

# The lane, counted from the top of a rank's rows, and the hatch of each kind of work; waiting is drawn paler.
_KINDS: dict[Activity, tuple[int, str]] = {
    "sending": (0, ""),
    "receiving": (1, "////"),
    "reducing": (2, "xxxx"),
    "computing": (2, "++++"),
    "waiting": (2, "----"),
}
_NAMES: dict[str, Activity] = {"send": "sending", "receive": "receiving", "reduce": "reducing", "compute": "computing"}
_UNITS = (("seconds", 1.0), ("milliseconds", 1e3), ("microseconds", 1e6), ("nanoseconds", 1e9))

# Of a pipeline's schedule, in inches: the figure, the rows' names, a letter of 9 points, the edges of its box.
_WIDEST, _LEFT = 7.2, 0.75
_LETTER, _EDGES = 0.08, 0.015


def timeline(run: Run) -> Figure:
    """What each rank does in virtual time: three lanes per rank, a hatch for each kind of work.

    The lanes are the sending port, the receiving port, and the program (reducing, computing, waiting). A rank waits
    when it has not finished and neither sends, reduces nor computes: for a message, which may be coming in meanwhile.
    """
    spans = spans_of(run)
    end = max((stop for rank in spans for kind in rank.values() for _, stop in kind), default=0.0)
    unit, factor = next((unit for unit in _UNITS if end * unit[1] >= 1), _UNITS[-1] if end else _UNITS[0])
    figure, axes = plt.subplots(figsize=(7.2, 1.15 + 0.46 * len(spans)))
    for number, rank in enumerate(spans):
        for kind, pieces in rank.items():
            if pieces:
                lane, hatch = _KINDS[kind]
                axes.broken_barh(
                    [(factor * start, factor * (stop - start)) for start, stop in pieces],
                    (number - 0.42 + 0.28 * lane, 0.27),
                    facecolor="white" if hatch else colour_of(number),
                    edgecolor=tint(QUIET, 0.5) if kind == "waiting" else line_of(number),
                    hatch=hatch,
                    linewidth=0.7,
                    label=f"rank {number} {kind}",
                )
    name_rows(axes, [f"rank {number}" for number in range(len(spans))], edge=0.5)
    axes.set_xlim(0, end * factor * 1.01 or 1)
    axes.set_xlabel(f"virtual time in {unit}")
    kinds = [kind for kind in _KINDS if any(rank[kind] for rank in spans)]
    keys = [
        Patch(facecolor="white" if _KINDS[kind][1] else tint(QUIET, 0.7), edgecolor=QUIET, hatch=_KINDS[kind][1])
        for kind in kinds
    ]
    figure.legend(keys, kinds, loc="outside upper right", ncols=len(keys), fontsize=9)
    return figure


def pipeline_schedules(timings: Mapping[str, Timing], unit: str = "units of time") -> Figure:
    """The schedules one below the other on one time axis, each under its name with its time and its bubble.

    Forward passes are filled, backward ones hatched; later chunks of an interleaved schedule are darker, and a legend
    then says which shade is which chunk. Where a box is wide enough it has the micro-batch's number.
    """
    rows = [len(timing.works) for timing in timings.values()]
    figure, strips = plt.subplots(
        len(timings), 1, sharex=True, squeeze=False, figsize=(_WIDEST, 0.7 + sum(0.42 + 0.3 * count for count in rows))
    )
    longest = max(timing.seconds for timing in timings.values())
    inches = (_WIDEST - _LEFT) / longest
    for axes, (name, timing) in zip(strips[:, 0], timings.items(), strict=True):
        draw_schedule(axes, timing, inches)
        axes.set_title(f"{name}: {timing.seconds:g} {unit}, bubble {100 * timing.bubble_fraction:.0f} %", fontsize=10)
    strips[-1, 0].set_xlim(0, 1.01 * longest)
    strips[-1, 0].set_xlabel(f"{unit}; filled: forward, hatched: backward, grey: bubble", fontsize=9)
    chunks = max(timing.chunks for timing in timings.values())
    if chunks > 1:
        keys = [
            Patch(facecolor=tint(QUIET, _depth(chunk, chunks)), edgecolor=QUIET, label=f"forward, chunk {chunk}")
            for chunk in range(chunks)
        ]
        for ground, name in (("white", "chunk 0"), (tint(QUIET, 0.25), "chunk 1" if chunks == 2 else "later chunks")):
            keys.append(Patch(facecolor=ground, edgecolor=QUIET, hatch="///", label=f"backward, {name}"))
        figure.legend(handles=keys, loc="outside upper right", ncols=len(keys), fontsize=9)
    return figure


def draw_schedule(axes: Axes, timing: Timing, inches: float, text: bool = True) -> None:
    """One schedule into axes; `inches` per unit of time decide which boxes get a number, with `text` at all."""
    stages = len(timing.works)
    for stage, works in enumerate(timing.works):
        axes.add_patch(Rectangle((0, stage - 0.4), timing.seconds, 0.8, facecolor="#EEEEEE", edgecolor="none"))
        for work in works:
            number = str(work.micro_batch) if text else work.kind
            has_room = (work.end - work.start) * inches > _EDGES + _LETTER * len(number)
            _draw_pass(axes, work, timing.chunks, number if has_room else "")
    name_rows(axes, [f"stage {stage}" for stage in range(stages)], edge=0.55)
    axes.spines["left"].set_visible(False)


def spans_of(run: Run) -> list[dict[Activity, list[Span]]]:
    """By rank and kind of work, when the rank did it, in virtual seconds."""
    spans: list[dict[Activity, list[Span]]] = [{kind: [] for kind in _KINDS} for _ in run.results]
    for event in run.events:
        if event.end > event.start:
            spans[event.rank][_NAMES[event.kind]].append((event.start, event.end))
    for rank, until in zip(spans, run.finished.tolist(), strict=True):
        free_from = 0.0
        for start, stop in sorted([*rank["sending"], *rank["reducing"], *rank["computing"]]):
            if start > free_from:
                rank["waiting"].append((free_from, min(start, until)))
            free_from = max(free_from, stop)
        if until > free_from:
            rank["waiting"].append((free_from, until))
    return spans


def _draw_pass(axes: Axes, work: Work, chunks: int, text: str) -> None:
    colour = colour_of(work.stage)
    area = ((work.start, work.stage - 0.4), work.end - work.start, 0.8)
    is_forward = work.kind == FORWARD
    ground = tint(colour, _depth(work.chunk, chunks)) if is_forward else tint(colour, 0.25) if work.chunk else "white"
    axes.add_patch(Rectangle(*area, facecolor=ground, edgecolor="none"))
    if not is_forward:
        axes.add_patch(Rectangle(*area, fill=False, edgecolor=tint(colour, 0.6), hatch="///", linewidth=0))
    axes.add_patch(Rectangle(*area, fill=False, edgecolor=colour, linewidth=1))
    if text:
        behind: dict[str, Any] | None = None if is_forward else {"facecolor": ground, "edgecolor": "none", "pad": 1}
        label(axes, ((work.start + work.end) / 2, work.stage), text, fontsize=9, bbox=behind)


def _depth(chunk: int, chunks: int) -> float:
    """How dark a chunk's forward passes are."""
    return 0.5 if chunks == 1 else 0.3 + 0.5 * chunk / (chunks - 1)
