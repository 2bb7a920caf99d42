"""Plots that several notebooks share; each returns a figure for `show`."""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from distlab.draw.style import DASHES, HATCHES, INK, MARKERS, RANK_COLOURS

if TYPE_CHECKING:
    from distlab.metrics import Utilisation


def bars(values: Mapping[str, float], label: str, number_format: str = "{:,.0f}") -> Figure:
    """Horizontal bars, one per name in `values`, top down, each with its number; `label` names the axis."""
    figure, axes = plt.subplots(figsize=(7.2, 0.6 + 0.42 * len(values)))
    positions = np.arange(len(values))
    for position, (name, value) in enumerate(values.items()):
        colour, hatch = RANK_COLOURS[position % len(RANK_COLOURS)], HATCHES[position % len(HATCHES)]
        axes.barh(position, value, height=0.62, color=colour, hatch=hatch, edgecolor="white", label=name)
        axes.annotate(
            number_format.format(value), (max(value, 0), position), (4, 0), textcoords="offset points", va="center"
        )
    axes.set_yticks(positions, list(values))
    axes.invert_yaxis()
    axes.margins(x=0.15)
    axes.set_xlabel(label)
    axes.tick_params(axis="y", length=0)
    return figure


def grid(
    answers: Mapping[str, Mapping[str, object]], columns: Sequence[str], looks: Mapping[object, tuple[str, str]]
) -> Figure:
    """Circles in rows, named as in `answers`, and `columns`: what each row answers for each column.

    `looks` gives for every answer the circle's filling ("full", "left" or "none") and its meaning, written below.
    """
    figure, axes = plt.subplots(figsize=(7.2, 0.9 + 0.33 * len(answers)))
    for row, given in enumerate(answers.values()):
        for column, name in enumerate(columns):
            filling, _ = looks[given[name]]
            axes.plot(
                column,
                row,
                marker="o",
                markersize=13,
                linestyle="",
                color=RANK_COLOURS[0],
                markerfacecoloralt="white",
                fillstyle=filling,
            )
    # Long names take several lines: they break at spaces and inside compound names.
    labels = [re.sub(r" |(?<=[a-z])(?=[A-Z][a-z])", "\n", name) for name in columns]
    axes.set_xticks(range(len(columns)), labels)
    axes.set_yticks(range(len(answers)), list(answers))
    axes.invert_yaxis()
    axes.margins(0.08)
    axes.tick_params(length=0, labeltop=True, labelbottom=False)
    axes.spines[:].set_visible(False)
    words = {"full": "full", "left": "half", "none": "empty"}
    axes.set_xlabel("     ".join(f"{words[filling]}: {meaning}" for filling, meaning in looks.values()))
    return figure


def utilisation(recorded: "Utilisation") -> Figure:
    """How busy each core, and below that each GPU, was over time: one row a device, filled up to its percentage."""
    columns = [(f"core {i}", busy) for i, busy in enumerate(recorded.cores.T)]
    columns += [(f"GPU {i}", busy) for i, busy in enumerate(recorded.gpus.T)]
    figure, rows = plt.subplots(len(columns), 1, sharex=True, squeeze=False, figsize=(7.2, 0.8 + 0.62 * len(columns)))
    for index, (axes, (name, busy)) in enumerate(zip(rows[:, 0], columns, strict=True)):
        style = index % len(RANK_COLOURS)
        axes.fill_between(recorded.seconds, busy, step="post", color=RANK_COLOURS[style], alpha=0.35)
        axes.step(
            recorded.seconds,
            busy,
            where="post",
            color=INK,
            linewidth=0.8,
            marker=MARKERS[style],
            markersize=2.5,
            linestyle=DASHES[0],
        )
        axes.set_ylim(0, 105)
        axes.set_yticks([0, 100], ["0 %", "100 %"])
        axes.set_ylabel(name, rotation=0, ha="right", va="center")
    rows[-1, 0].set_xlabel("seconds since the start")
    return figure
