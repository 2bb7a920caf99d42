"""The time line of a pipeline: one row a stage, one box for each pass of a micro-batch, grey where a stage waits."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from distlab.draw.diagram import label, tint
from distlab.draw.style import INK, RANK_COLOURS
from distlab.model_parallel.pipelines import FORWARD, Timing, Work

_WIDEST, _LEFT = 7.2, 0.75
# Inches that a letter of 8 points takes, and the edges of its box.
_LETTER, _EDGES = 0.068, 0.035


def pipeline_schedules(timings: Mapping[str, Timing], unit: str = "units of time") -> Figure:
    """The schedules one below the other on one time axis, each under its name with its time and its bubble.

    Forward passes are filled, backward ones hatched; later chunks of an interleaved schedule are darker. Where a box is
    wide enough it has the micro-batch's number.
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
    return figure


def draw_schedule(axes: Axes, timing: Timing, inches: float, text: bool = True) -> None:
    """One schedule into axes; `inches` per unit of time decide which boxes get a number, with `text` at all."""
    stages = len(timing.works)
    for stage, works in enumerate(timing.works):
        axes.add_patch(Rectangle((0, stage - 0.4), timing.seconds, 0.8, facecolor="#EEEEEE", edgecolor="none"))
        for work in works:
            number = str(work.micro_batch) if text else work.kind
            _box(axes, work, timing.chunks, number if (work.end - work.start) * inches > _width(number) else "")
    axes.set_yticks(range(stages), [f"stage {stage}" for stage in range(stages)], color=INK)
    axes.set_ylim(stages - 0.45, -0.55)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)


def _box(axes: Axes, work: Work, chunks: int, text: str) -> None:
    colour = RANK_COLOURS[work.stage % len(RANK_COLOURS)]
    area = ((work.start, work.stage - 0.4), work.end - work.start, 0.8)
    depth = 0.5 if chunks == 1 else 0.3 + 0.5 * work.chunk / (chunks - 1)
    is_forward = work.kind == FORWARD
    ground = tint(colour, depth) if is_forward else tint(colour, 0.25) if work.chunk else "white"
    axes.add_patch(Rectangle(*area, facecolor=ground, edgecolor="none"))
    if not is_forward:
        axes.add_patch(Rectangle(*area, fill=False, edgecolor=tint(colour, 0.6), hatch="///", linewidth=0))
    axes.add_patch(Rectangle(*area, fill=False, edgecolor=colour, linewidth=1))
    if text:
        behind = None if is_forward else {"facecolor": ground, "edgecolor": "none", "pad": 1}
        label(axes, ((work.start + work.end) / 2, work.stage), text, fontsize=8, bbox=behind)


def _width(text: str) -> float:
    return _EDGES + _LETTER * len(text)
