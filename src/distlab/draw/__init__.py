"""Pictures in the course's one style: colour-blind safe, byte-equal when drawn again, each with a text description."""

from distlab.draw.links import bytes_per_link
from distlab.draw.pipeline_schedules import pipeline_schedules
from distlab.draw.plots import bars, grid, utilisation
from distlab.draw.stepper import Stepper, show_stepper
from distlab.draw.steps.animation import animation, show_animation
from distlab.draw.steps.strip import describe_steps, step_strip
from distlab.draw.strips import Interval, busy, exchange, seen
from distlab.draw.style import DASHES, HATCHES, MARKERS, RANK_COLOURS, apply_style, save, show
from distlab.draw.timelines import timeline
from distlab.draw.traces import Trace, trace
from distlab.draw.widgets import show_widget

__all__ = [
    "DASHES",
    "HATCHES",
    "MARKERS",
    "RANK_COLOURS",
    "Interval",
    "Stepper",
    "Trace",
    "animation",
    "apply_style",
    "bars",
    "busy",
    "bytes_per_link",
    "describe_steps",
    "exchange",
    "grid",
    "pipeline_schedules",
    "save",
    "seen",
    "show",
    "show_animation",
    "show_stepper",
    "show_widget",
    "step_strip",
    "timeline",
    "trace",
    "utilisation",
]
