"""Strips: one row per device or worker, and along it the time, the steps or the samples."""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from distlab.draw.diagram import arrow, name_rows, tint
from distlab.draw.style import MARKERS, QUIET, colour_of, hatch_of

if TYPE_CHECKING:  # it imports TensorFlow, which drawing does not need
    from distlab.profiling.messages import Message


class Interval(NamedTuple):
    """A device was busy with `kind` of work from `start` to `end`, in seconds."""

    start: float
    end: float
    kind: str


def busy(
    runs: Mapping[str, Sequence[Sequence[Interval]]],
    devices: Sequence[str],
    axis: str = "milliseconds since the first step began",
    per_second: float = 1000.0,
) -> Figure:
    """One strip per run, all on one time axis: a row for each of `devices`, a box for each interval.

    `runs[title][number]` holds the intervals of device `number`; a device without an entry was idle. The first kind of
    work is drawn filled, every other kind as an outline with its own hatch. Time starts at each run's first interval;
    `axis` is what the time axis says, in a unit of which a second has `per_second`.
    """
    every = [interval for rows in runs.values() for row in rows for interval in row]
    # The hatch of each kind of work.
    names = dict.fromkeys(interval.kind for interval in every)
    kinds = {kind: "//////" if place == 1 else hatch_of(place) for place, kind in enumerate(names)}
    height = 0.7 + len(runs) * (0.45 + 0.3 * len(devices))
    figure, strips = plt.subplots(len(runs), 1, sharex=True, squeeze=False, figsize=(7.2, height))
    for axes, (title, rows) in zip(strips[:, 0], runs.items(), strict=True):
        origin = min((interval.start for row in rows for interval in row), default=0.0)
        for number, row in enumerate(rows):
            for interval in row:
                hatch = kinds[interval.kind]
                axes.barh(
                    number,
                    per_second * (interval.end - interval.start),
                    left=per_second * (interval.start - origin),
                    height=0.62,
                    facecolor="white" if hatch else colour_of(number),
                    edgecolor=colour_of(number),
                    hatch=hatch,
                    linewidth=0.8,
                )
        axes.set_title(title, fontsize=10)
        name_rows(axes, devices)
        axes.margins(x=0.01)
    strips[-1, 0].set_xlabel(axis)
    boxes = [Patch(facecolor="white" if hatch else QUIET, edgecolor=QUIET, hatch=hatch) for hatch in kinds.values()]
    figure.legend(boxes, kinds, loc="outside upper right", ncols=len(kinds), fontsize=9)
    return figure


def exchange(patterns: "Mapping[str, Sequence[Message]]", devices: Sequence[str]) -> Figure:
    """One panel per pattern: the steps run to the right, one row per device, an arrow for each message in its step.

    An arrow has the colour of the device that sends.
    """
    figure, panels = plt.subplots(1, len(patterns), squeeze=False, figsize=(7.2, 0.9 + 0.42 * len(devices)))
    last = max((message.step for messages in patterns.values() for message in messages), default=1)
    for axes, (title, messages) in zip(panels[0], patterns.items(), strict=True):
        steps = range(last + 1)
        for number in range(len(devices)):
            colour, marker = colour_of(number), MARKERS[number % len(MARKERS)]
            axes.plot(steps, [number] * len(steps), color=tint(QUIET, 0.4), marker="", linestyle="-", linewidth=0.8)
            axes.plot(steps, [number] * len(steps), color=colour, marker=marker, linestyle="")
        for message in messages:
            colour = colour_of(message.source)
            arrow(axes, (message.step - 1, message.source), (message.step - 0.06, message.destination), colour=colour)
        axes.set_title(title, fontsize=10)
        name_rows(axes, devices if axes is panels[0, 0] else [""] * len(devices))
        axes.set_xlim(-0.2, last + 0.2)
        axes.set_xticks(steps, ["start", *map(str, steps[1:])])
        axes.set_xlabel("step")
    return figure


def seen(cases: Mapping[str, Sequence[Collection[int]]], files: int, per_file: int) -> Figure:
    """Who saw which sample: a block per case, a row per worker, a cell per sample, filled where the worker saw it.

    `cases[title][worker]` holds the numbers of the samples that the worker was given; those from files × per_file on
    are not drawn.
    """
    workers = max(len(rows) for rows in cases.values())
    height = 0.7 + len(cases) * (0.32 + 0.19 * workers)
    figure, blocks = plt.subplots(len(cases), 1, sharex=True, squeeze=False, figsize=(7.2, height))
    gap = 0.8
    for axes, (title, rows) in zip(blocks[:, 0], cases.items(), strict=True):
        for worker, samples in enumerate(rows):
            colour, hatch = colour_of(worker), hatch_of(worker)
            for sample in range(files * per_file):
                corner = (sample + gap * (sample // per_file), worker - 0.4)
                axes.add_patch(Rectangle(corner, 1, 0.8, facecolor="white", edgecolor=tint(QUIET, 0.5), linewidth=0.6))
                if sample in samples:
                    axes.add_patch(
                        Rectangle(corner, 1, 0.8, facecolor=colour, edgecolor="white", hatch=hatch, linewidth=0.6)
                    )
        axes.set_title(title, fontsize=10)
        name_rows(axes, [f"worker {worker}" for worker in range(len(rows))])
        axes.spines[["left", "bottom"]].set_visible(False)
        axes.tick_params(axis="both", length=0)
    step = per_file + gap
    blocks[-1, 0].set_xlim(-0.3, files * step - gap + 0.3)
    blocks[-1, 0].set_xticks(
        [file * step + per_file / 2 for file in range(files)], [f"file {file}" for file in range(files)]
    )
    return figure
