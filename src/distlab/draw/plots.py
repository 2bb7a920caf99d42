"""Plots that several notebooks share: bars, a grid of answers, the load of devices, the bytes per link."""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Unpack

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from distlab.draw.diagram import TextStyle, label, tint
from distlab.draw.style import DASHES, INK, MARKERS, QUIET, RANK_COLOURS, colour_of, hatch_of
from distlab.draw.traces import Source, record_of
from distlab.runtime.arguments import WrongArgument, require_kind, require_number, require_some, wrong
from distlab.simulate import KINDS

if TYPE_CHECKING:
    from distlab.metrics import Utilisation

_UNITS = (("bytes", 1), ("kB", 10**3), ("MB", 10**6), ("GB", 10**9), ("TB", 10**12))


def bars(values: Mapping[str, float], label: str, number_format: str = "{:,.0f}") -> Figure:
    """Horizontal bars, one per name in `values`, top down, each with its number; `label` names the axis.

    Raises WrongArgument for what is no dictionary of numbers, and for an empty one.
    """
    example = 'a dictionary with a number for each name, such as {"one device": 1200}'
    require_kind("values", values, Mapping, example)
    require_some("values", values, example)
    for name, value in values.items():
        require_number(f"the value of {name!r}", value)
        if np.ndim(value):
            raise wrong(f"the value of {name!r}", value, "a single number")
    require_kind("number_format", number_format, str, 'a text, such as "{:,.0f}"')
    if "{" not in number_format:
        raise wrong("number_format", number_format, 'a format in braces, such as "{:,.0f}"')
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


def grid(
    answers: Mapping[str, Mapping[str, object]], columns: Sequence[str], looks: Mapping[object, tuple[str, str]]
) -> Figure:
    """Circles in rows, named as in `answers`, and `columns`: what each row answers for each column.

    `looks` gives for every answer the circle's filling ("full", "left" or "none") and its meaning, written below.

    Raises WrongArgument where `answers` or `columns` are empty, or an answer or a look is missing.
    """
    require_some("answers", answers, "a row for each name")
    require_some("columns", columns, "the name of each column")
    for title, answer in answers.items():
        for heading in columns:
            if heading not in answer:
                raise WrongArgument(f"The row {title!r} has no answer for the column {heading!r}.")
            if answer[heading] not in looks:
                raise WrongArgument(f"looks has no entry for {answer[heading]!r}, an answer of the row {title!r}.")
    figure, axes = plt.subplots(figsize=(7.2, 0.9 + 0.33 * len(answers)))
    for row, answer in enumerate(answers.values()):
        for column, name in enumerate(columns):
            filling, _ = looks[answer[name]]
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
    """How busy each core, and below that each GPU, was over time: one row per device, filled up to its percentage.

    Raises WrongArgument for anything else than what was recorded.
    """
    if not hasattr(recorded, "cores"):
        raise wrong(
            "recorded", recorded, "what `with metrics.Utilisation() as recorded:` has recorded, after its block"
        )
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


def bytes_per_link(source: Source, size: int | None = None) -> Figure:
    """How many bytes went from each rank (row) to each other (column), with the sums: what each sent and received.

    The darker a cell, the more bytes; a link without messages is empty.

    size: the number of ranks; for events and errors, if some rank did nothing.
    """
    sent, messages = traffic(source, size)
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


def traffic(source: Source, size: int | None = None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The bytes and the number of the messages, by sender and receiver; two arrays of shape (size, size)."""
    record = record_of(source, size)
    columns = record.events.columns
    columns = columns[columns["kind"] == KINDS.index("send")]
    shape = (record.size, record.size)
    sent, messages = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    np.add.at(sent, (columns["rank"], columns["partner"]), columns["bytes"])
    np.add.at(messages, (columns["rank"], columns["partner"]), 1)
    return sent, messages


def _number(axes: Axes, x: float, y: float, value: float, **style: Unpack[TextStyle]) -> None:
    text = f"{value:,.0f}" if value == round(value) or value >= 1000 else f"{value:.3g}"
    label(axes, (x, y), text, **style)
