"""Plots that several chapters share: bars, and the load of devices."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from distlab.draw.style import DASHES, INK, MARKERS, RANK_COLOURS, colour_of, hatch_of

if TYPE_CHECKING:
    from distlab.metrics import Utilisation


def bars(
    values: Mapping[str, float], label: str, number_format: str = "{:,.0f}", highlight: str | None = None
) -> Figure:
    """Horizontal bars, one per name in `values`, top down, each with its number; `label` names the axis.

    All have one colour and no hatch, but for the bar of the name `highlight`.
    """
    figure, axes = plt.subplots(figsize=(7.2, 0.6 + 0.42 * len(values)))
    positions = np.arange(len(values))
    for position, (name, value) in enumerate(values.items()):
        style = int(name == highlight)
        colour, hatch = colour_of(style), hatch_of(style)
        axes.barh(position, value, height=0.62, color=colour, hatch=hatch, edgecolor="white", label=name)
        axes.annotate(
            number_format.format(value), (max(value, 0), position), (4, 0), textcoords="offset points", va="center"
        )
    axes.set_yticks(positions, list(values))
    axes.invert_yaxis()
    axes.margins(x=0.15)
    axes.set_xlabel(label)
    axes.xaxis.set_major_formatter("{x:,.10g}")
    axes.tick_params(axis="y", length=0)
    return figure


def utilisation(recorded: "Utilisation") -> Figure:
    """How busy each core, and below that each GPU, was over time: one row per device, filled up to its percentage."""
    columns = [(f"core {i}", busy) for i, busy in enumerate(recorded.cores.T)]
    columns += [(f"GPU {i}", busy) for i, busy in enumerate(recorded.gpus.T)]
    figure, rows = plt.subplots(len(columns), 1, sharex=True, squeeze=False, figsize=(7.2, 0.8 + 0.62 * len(columns)))
    seconds = np.append(0.0, recorded.seconds)  # a sample is the mean since the one before
    for index, (axes, (name, sampled)) in enumerate(zip(rows[:, 0], columns, strict=True)):
        style, busy = index % len(RANK_COLOURS), np.append(sampled[:1], sampled)
        axes.fill_between(seconds, busy, step="pre", color=RANK_COLOURS[style], alpha=0.35)
        axes.step(
            seconds,
            busy,
            where="pre",
            color=INK,
            linewidth=0.8,
            marker=MARKERS[style],
            markersize=2.5,
            linestyle=DASHES[0],
        )
        axes.set_ylim(0, 105)
        axes.set_xlim(0, None)
        axes.set_yticks([0, 100], ["0 %", "100 %"])
        axes.set_ylabel(name, rotation=0, ha="right", va="center")
    rows[-1, 0].set_xlabel("seconds since the start")
    return figure
