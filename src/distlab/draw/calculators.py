"""Calculators: a formula of the course with sliders, and what it gives as bars or as a schedule."""

import json
from html import escape
from pathlib import Path

from IPython.display import display

from distlab.costs.prediction.presets import TRANSFORMERS
from distlab.draw.diagram import fill_of, line_of
from distlab.draw.style import RANK_COLOURS
from distlab.runtime.lookups import look_up

CAPTIONS = {
    "all-reduce": "An all-reduce by four algorithms: its steps, each of which waits for α, and the bytes that follow "
    "one another, n times a factor; β is 1 divided by the bandwidth. A bar that is too long is cut.",
    "memory": "The memory of one device with Adam in mixed precision, without ZeRO and with its stages 1 to 3, which "
    "shard among the data-parallel replicas. The dashed line is what it has. A micro-batch is one sequence, and its "
    "activations are recomputed. A pipeline's stages have equally many layers; the 118 of palm-540b make 1, 2 or 59.",
    "pipeline": "A batch on the stages of a pipeline. A forward pass (filled, paler in later chunks) takes 1 unit of "
    "time and a backward pass (hatched, or dark where narrow) 2, with the number of its micro-batch where there is "
    "room; grey is the bubble.",
    "amdahl": "The time of fixed work by Amdahl's law: the serial part stays, and the rest is divided among the "
    "devices.",
    "saves": "The share of the time that a job loses to saves and faults (Young, 1974): with a save every τ seconds, a "
    "fault repeats half of them on average. It holds for small shares.",
}
"""What each calculator shows, by its name."""
STYLE, SCRIPT = Path(__file__).with_suffix(".css"), Path(__file__).with_suffix(".js")
WITHOUT_SCRIPT = "The calculator needs JavaScript. In JupyterLab, run this cell."


def calculator(name: str) -> None:
    """Display a calculator: "all-reduce", "memory", "pipeline", "amdahl" or "saves".

    It needs neither a server nor a network. Its sliders and menus work by keyboard, a sentence says what comes out, and
    paper has the picture and that sentence. Raises NoSuchName for another name.
    """
    caption = look_up(CAPTIONS, name, "calculator")
    data = {
        "fills": [fill_of(number) for number in range(len(RANK_COLOURS))],
        "lines": [line_of(number) for number in range(len(RANK_COLOURS))],
        "models": {
            model.name: [model.parameters, model.layers, model.hidden, model.heads, model.sequence]
            for model in TRANSFORMERS.values()
        },
    }
    page = (
        f'<figure class="distlab-calculator" data-name="{name}" data-lm-suppress-shortcuts="true">'
        f'<style>\n{STYLE.read_text()}</style>\n<p class="status" role="status">{WITHOUT_SCRIPT}</p>\n'
        f"<figcaption>{escape(caption)}</figcaption>\n"
        f'<script type="application/json">{json.dumps(data, separators=(",", ":"))}</script>\n'
        f"<script>{SCRIPT.read_text()}</script></figure>"
    )
    display({"text/html": page, "text/plain": f"Calculator: {caption}"}, raw=True)
