"""How many bytes went over each link."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from distlab.draw.diagram import tint
from distlab.draw.style import INK, QUIET, RANK_COLOURS
from distlab.draw.traces import Source, Trace, events_of, ranks_in
from distlab.simulate import KINDS, Run

_UNITS = (("bytes", 1), ("kB", 10**3), ("MB", 10**6), ("GB", 10**9), ("TB", 10**12))


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
    for source_rank in range(ranks):
        for to in range(ranks):
            if source_rank == to or messages[source_rank, to]:
                share = sent[source_rank, to] / most if most else 0
                face = tint(QUIET, 0.15) if source_rank == to else tint(RANK_COLOURS[4], 0.15 + 0.75 * share)
                hatch = "////" if source_rank == to else ""
                axes.add_patch(
                    Rectangle((to - 0.5, source_rank - 0.5), 1, 1, facecolor=face, edgecolor="white", hatch=hatch)
                )
            if messages[source_rank, to]:
                _number(axes, to, source_rank, sent[source_rank, to] / factor)
        _number(axes, ranks + 0.15, source_rank, sent[source_rank].sum() / factor)
        _number(axes, source_rank, ranks + 0.15, sent[:, source_rank].sum() / factor)
    _number(axes, ranks + 0.15, ranks + 0.15, sent.sum() / factor, weight="bold")
    names = [*map(str, range(ranks)), "sum"]
    places = [*range(ranks), ranks + 0.15]
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


def traffic(source: Source, size: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The bytes and the number of the messages, by sender and receiver; two arrays of int64 (size, size)."""
    events = events_of(source)
    if isinstance(source, Trace):
        size = source.size
    elif isinstance(source, Run):
        size = len(source.results)
    columns = events.columns
    columns = columns[columns["kind"] == KINDS.index("send")]
    shape = (size or ranks_in(events),) * 2
    sent, messages = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    np.add.at(sent, (columns["rank"], columns["partner"]), columns["bytes"])
    np.add.at(messages, (columns["rank"], columns["partner"]), 1)
    return sent, messages


def _number(axes: plt.Axes, x: float, y: float, value: float, **style: object) -> None:
    text = f"{value:,.0f}" if value == round(value) or value >= 1000 else f"{value:.3g}"
    axes.text(x, y, text, ha="center", va="center", fontsize=9, color=INK, **style)
