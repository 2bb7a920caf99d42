"""Plots that several notebooks share: bars, the load of devices, the bytes per link."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from distlab.draw.diagram import label, tint
from distlab.draw.style import DASHES, INK, MARKERS, QUIET, RANK_COLOURS, colour_of, hatch_of
from distlab.simulate import Run

if TYPE_CHECKING:
    from distlab.metrics import Utilisation

_UNITS = (("bytes", 1), ("kB", 10**3), ("MB", 10**6), ("GB", 10**9), ("TB", 10**12))


def bars(values: Mapping[str, float], label: str, number_format: str = "{:,.0f}") -> Figure:
    """Horizontal bars, one per name in `values`, top down, each with its number; `label` names the axis."""
    figure, axes = plt.subplots(figsize=(7.2, 0.6 + 0.42 * len(values)))
    positions = np.arange(len(values))
    for position, (name, value) in enumerate(values.items()):
        colour, hatch = colour_of(position), hatch_of(position)
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


def utilisation(recorded: "Utilisation") -> Figure:
    """How busy each core, and below that each GPU, was over time: one row per device, filled up to its percentage."""
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


def bytes_per_link(run: Run) -> Figure:
    """How many bytes went from each rank (row) to each other (column), with the sums: what each sent and received.

    The darker a cell, the more bytes; a link without messages is empty.
    """
    sent, messages = traffic(run)
    ranks = len(sent)
    most = sent.max(initial=0)
    unit, factor = next((unit for unit in reversed(_UNITS) if most >= 10 * unit[1]), _UNITS[0])
    figure, axes = plt.subplots(figsize=(1.9 + 0.62 * ranks, 1.25 + 0.36 * ranks))
    sums = ranks + 0.15  # where the row and the column of the sums are
    for sender in range(ranks):
        for receiver in range(ranks):
            if sender == receiver or messages[sender, receiver]:
                share = sent[sender, receiver] / most if most else 0
                face = tint(QUIET, 0.15) if sender == receiver else tint(RANK_COLOURS[4], 0.15 + 0.75 * share)
                cell = Rectangle((receiver - 0.5, sender - 0.5), 1, 1, facecolor=face, edgecolor="white")
                cell.set_hatch("////" if sender == receiver else "")
                axes.add_patch(cell)
            if messages[sender, receiver]:
                _number(axes, receiver, sender, sent[sender, receiver] / factor)
        _number(axes, sums, sender, sent[sender].sum() / factor)
        _number(axes, sender, sums, sent[:, sender].sum() / factor)
    _number(axes, sums, sums, sent.sum() / factor, fontweight="bold")
    names = [*map(str, range(ranks)), "sum"]
    places = [*range(ranks), sums]
    axes.set_xticks(places, names)
    axes.set_yticks(places, names)
    axes.set_xlim(-0.5, ranks + 0.65)
    axes.set_ylim(ranks + 0.65, -0.5)
    axes.tick_params(length=0, labeltop=True, labelbottom=False)
    axes.spines[:].set_visible(False)
    axes.xaxis.set_label_position("top")
    axes.set_xlabel("to rank")
    axes.set_ylabel("from rank")
    figure.text(0.99, 0.005, f"in {unit}", ha="right", va="bottom", fontsize=9, color=INK)
    return figure


def traffic(run: Run) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The bytes and the number of the messages, by sender and receiver; two arrays of shape (size, size)."""
    columns = run.events.select("send").columns
    sent, messages = np.zeros((2, len(run.results), len(run.results)), np.int64)
    np.add.at(sent, (columns["rank"], columns["partner"]), columns["bytes"])
    np.add.at(messages, (columns["rank"], columns["partner"]), 1)
    return sent, messages


def _number(axes: Axes, x: float, y: float, value: float, **style: Any) -> None:
    text = f"{value:,.0f}" if value == round(value) or value >= 1000 else f"{value:.3g}"
    label(axes, (x, y), text, **style)
