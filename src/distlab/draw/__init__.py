"""Pictures in the course's one style: colour-blind safe, byte-equal when drawn again, each with a text description.

    draw.apply_style()
    draw.show(draw.bars({"one device": 1200, "two devices": 2100}, "images per second"), "Two bars: …")
    trace = draw.trace(collectives.ring_all_reduce, size=4)  # a run whose steps can be drawn, even if it is wrong
    draw.show(trace.strip(), trace.describe())

It may import `runtime`, `simulate`, `collectives`, `model_parallel` and `costs`. Begin with `style`, then `traces`.
"""

from distlab.draw.calculators import calculator
from distlab.draw.diagram import arrow, box, canvas, label, row, tint
from distlab.draw.player import play
from distlab.draw.plots import bars, utilisation
from distlab.draw.strips import Interval, busy, exchange, seen
from distlab.draw.style import (
    DASHES,
    HATCHES,
    INK,
    MARKERS,
    QUIET,
    RANK_COLOURS,
    STYLE,
    apply_style,
    save,
    show,
    show_widget,
    svg,
)
from distlab.draw.timelines import draw_schedule, pipeline_schedules, timeline
from distlab.draw.traces import Trace, trace

__all__ = [
    "DASHES",
    "HATCHES",
    "INK",
    "MARKERS",
    "QUIET",
    "RANK_COLOURS",
    "STYLE",
    "Interval",
    "Trace",
    "apply_style",
    "arrow",
    "bars",
    "box",
    "busy",
    "calculator",
    "canvas",
    "draw_schedule",
    "exchange",
    "label",
    "pipeline_schedules",
    "play",
    "row",
    "save",
    "seen",
    "show",
    "show_widget",
    "svg",
    "timeline",
    "tint",
    "trace",
    "utilisation",
]
