"""The player: an all-reduce on ranks in a circle, which a reader plays or steps through, on 2 to 8 ranks."""

import json
from html import escape
from pathlib import Path
from typing import Any

from IPython.display import display

from distlab.draw.diagram import fill_of, line_of
from distlab.draw.style import show
from distlab.draw.traces import Trace, trace
from distlab.runtime.errors import WrongArgument
from distlab.simulate.world import Program

SIZES = range(2, 9)
STYLE, SCRIPT = Path(__file__).with_suffix(".css"), Path(__file__).with_suffix(".js")
WITHOUT_SCRIPT = "The player needs JavaScript. In JupyterLab, run this cell."


def play(program: Program, size: int = 4) -> None:
    """Display an all-reduce as a player and, below it, the strip of all its steps on `size` ranks.

    Raises WrongArgument as `figure` does.
    """
    still = trace(program, size)
    display({"text/html": figure(program, size), "text/plain": still.describe()}, raw=True)
    show(still.strip(), still.describe())


def figure(program: Program, size: int = 4) -> str:
    """The player as HTML, which begins with `size` ranks. It needs neither a server nor a network.

    Its buttons, slider and menu of 2 to 8 ranks work by keyboard; the chunks do not move for readers who have asked
    their system for reduced motion; a text says what happens in each step. Raises WrongArgument for a program that does
    not give every rank the sum: `trace(program, size).strip()` shows what it does wrong.
    """
    traces = {ranks: trace(program, ranks) for ranks in SIZES}
    return (
        f'<figure class="distlab-player" data-ranks="{size}" data-lm-suppress-shortcuts="true">'
        f"<style>\n{STYLE.read_text()}</style>\n"
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(traces[size].describe())}" '
        f'viewBox="0 0 680 40" width="680"><text x="8" y="25" font-size="14">{WITHOUT_SCRIPT}</text></svg>\n'
        "<figcaption>A row of chunks on each rank. The coloured numbers in a chunk are the ranks whose shares have "
        "been added; ▾ marks a chunk that has just arrived, a thick frame a finished one.</figcaption>\n"
        f'<script type="application/json">{json.dumps(film(traces), separators=(",", ":"))}</script>\n'
        f"<script>{SCRIPT.read_text()}</script></figure>"
    )


def film(traces: dict[int, Trace]) -> dict[str, Any]:
    """What the script draws: by number of ranks, the messages of each step and what each rank holds after it.

    A message is [source, to, chunks]. A chunk is a number whose bits are the ranks whose shares are in it.
    """
    runs = {}
    for ranks, run in traces.items():
        if fault := run.first_fault() or run.error:
            raise WrongArgument(f"the player shows right programs only; on {ranks} ranks: {fault}")
        runs[ranks] = {
            "sent": [
                [[message.source, message.to, run.boxes_sent(message)] for message in run.arriving_in(step)]
                for step in range(1, run.last + 1)
            ],
            "held": [
                [[sum(1 << owner for owner in chunk.ranks) if chunk else 0 for chunk in row] for row in by_rank]
                for by_rank in run.holdings
            ],
        }
    colours = range(max(traces))
    return {"colours": [fill_of(rank) for rank in colours], "lines": [line_of(rank) for rank in colours], "runs": runs}
