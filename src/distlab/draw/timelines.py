"""What each rank does in virtual time: its ports and its program, each in a lane of its own."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from distlab.draw.diagram import tint
from distlab.draw.rank_colours import line_of
from distlab.draw.style import INK, QUIET, RANK_COLOURS
from distlab.draw.traces import Source, Trace, events_of, ranks_in
from distlab.simulate import DeadlockError, Run, SimulationError

Span = tuple[float, float]

# The lane, counted from the top of a rank's rows, and the hatch of each kind of work; waiting is drawn paler.
_KINDS = {
    "sending": (0, ""),
    "receiving": (1, "////"),
    "reducing": (2, "xxxx"),
    "computing": (2, "++++"),
    "waiting": (2, "----"),
}
_NAMES = {"send": "sending", "receive": "receiving", "reduce": "reducing", "compute": "computing"}
_UNITS = (("seconds", 1.0), ("milliseconds", 1e3), ("microseconds", 1e6), ("nanoseconds", 1e9))


def timeline(source: Source, size: int | None = None) -> Figure:
    """What each rank does in virtual time: three lanes a rank, a hatch for each kind of work.

    The lanes are the sending port, the receiving port, and the program (reducing, computing, waiting). A rank waits
    when it has not finished and neither sends, reduces nor computes: for a message, which may be coming in meanwhile.
    Works for any run, also of arrays of numbers.

    size: the number of ranks; for events and errors, if some rank did nothing.
    """
    spans = spans_of(source, size)
    end = max((stop for rank in spans for kind in rank.values() for _, stop in kind), default=0.0)
    unit, factor = next((unit for unit in _UNITS if end * unit[1] >= 1), _UNITS[-1] if end else _UNITS[0])
    figure, axes = plt.subplots(figsize=(7.2, 1.15 + 0.46 * len(spans)))
    for number, rank in enumerate(spans):
        for kind, pieces in rank.items():
            _draw(axes, number, kind, pieces, factor)
    axes.set_yticks(range(len(spans)), [f"rank {number}" for number in range(len(spans))], color=INK)
    axes.set_ylim(len(spans) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.set_xlim(0, end * factor * 1.01 or 1)
    axes.set_xlabel(f"virtual time in {unit}")
    shown = [kind for kind in _KINDS if any(rank[kind] for rank in spans)]
    keys = [
        Patch(facecolor="white" if _KINDS[kind][1] else tint(QUIET, 0.7), edgecolor=QUIET, hatch=_KINDS[kind][1])
        for kind in shown
    ]
    figure.legend(keys, shown, loc="outside upper right", ncols=len(keys), fontsize=9)
    return figure


def spans_of(source: Source, size: int | None = None) -> list[dict[str, list[Span]]]:
    """By rank and kind of work ("sending", … "waiting"), when the rank was at it, in virtual seconds."""
    if isinstance(source, Trace):
        events, size = source.events, source.size
        stuck = source.error
    else:
        events = events_of(source)
        stuck = source if isinstance(source, SimulationError) else None
        size = len(source.results) if isinstance(source, Run) else size or ranks_in(events)

    spans: list[dict[str, list[Span]]] = [{kind: [] for kind in _KINDS} for _ in range(size)]
    for event in events:
        if event.end > event.start:
            spans[event.rank][_NAMES[event.kind]].append((event.start, event.end))
    end = max((stop for rank in spans for kind in rank.values() for _, stop in kind), default=0.0)
    finished = source.finished if isinstance(source, Run) else np.full(size, np.nan)
    for number, rank in enumerate(spans):
        until = max((stop for kind in rank.values() for _, stop in kind), default=0.0)
        if not np.isnan(finished[number]):
            until = finished[number]
        elif isinstance(stuck, DeadlockError) and number in stuck.waiting:
            until = end
        own = [span for kind in ("sending", "reducing", "computing") for span in rank[kind]]
        rank["waiting"] = _gaps(own, until)
    return spans


def _gaps(busy: list[Span], until: float) -> list[Span]:
    """The times from 0 to `until` that no span of `busy` covers."""
    gaps = []
    free_from = 0.0
    for start, stop in sorted(busy):
        if start > free_from:
            gaps.append((free_from, min(start, until)))
        free_from = max(free_from, stop)
    if until > free_from:
        gaps.append((free_from, until))
    return gaps


def _draw(axes: Axes, number: int, kind: str, spans: list[Span], factor: float) -> None:
    if not spans:
        return
    lane, hatch = _KINDS[kind]
    axes.broken_barh(
        [(factor * start, factor * (stop - start)) for start, stop in spans],
        (number - 0.42 + 0.28 * lane, 0.27),
        facecolor="white" if hatch else RANK_COLOURS[number % len(RANK_COLOURS)],
        edgecolor=tint(QUIET, 0.5) if kind == "waiting" else line_of(number),
        hatch=hatch,
        linewidth=0.7,
        label=f"rank {number} {kind}",
    )
