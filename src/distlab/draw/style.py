"""The style of every picture: palette, markers, fonts; and how a picture or widget gets its text description."""

import io
import re
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
from IPython.display import display
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from ipywidgets import Widget
    from matplotlib.typing import RcKeyType

Colour = str | tuple[float, float, float]
Dash = str | tuple[int, tuple[int, ...]]

# Okabe and Ito, "Color Universal Design" (2008), ordered for contrast on white; rank or chunk number i takes entry i.
RANK_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#F0E442", "#4D4D4D")
# Colour never carries meaning alone: number i also takes marker i and dash pattern i.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES: tuple[Dash, ...] = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (7, 2, 2, 2)))
# Hatches of lines only: matplotlib writes each dot or circle of the others as a path, a hundred times as much text.
HATCHES = ("", "//", "||", "xx", "\\\\", "++", "/-", "--")
INK = "#222222"
QUIET = "#767676"

# matplotlib writes a millionth of a point; a hundredth is more than a screen or printer shows and a third smaller.
LONG_COORDINATES = re.compile(r' (?:d|x|y)="[^"]*"')
LONG_NUMBER = re.compile(r"(\.\d\d)\d+")

STYLE: "dict[RcKeyType, Any]" = {
    "axes.prop_cycle": plt.cycler(color=RANK_COLOURS, marker=MARKERS, linestyle=DASHES),
    "axes.edgecolor": QUIET,
    "axes.labelcolor": INK,
    "axes.titlesize": "medium",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "figure.constrained_layout.use": True,
    "figure.figsize": (7.2, 3.2),
    "font.size": 10,
    "grid.color": "#DDDDDD",
    "legend.frameon": False,
    "lines.markersize": 5,
    "svg.fonttype": "path",
    "svg.hashsalt": "distlab",
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}


def apply_style() -> None:
    """Make matplotlib draw in the course's style from here on, whatever the user's matplotlibrc says."""
    plt.rcdefaults()
    plt.rcParams.update(STYLE)


def colour_of(number: int) -> str:
    """The colour of that rank, device or chunk; after the last colour the first comes again."""
    return RANK_COLOURS[number % len(RANK_COLOURS)]


def hatch_of(number: int) -> str:
    """The hatch of that rank, device or chunk."""
    return HATCHES[number % len(HATCHES)]


def svg(figure: Figure, description: str) -> str:
    """The figure as SVG text, the same for the same figure, with `description` as its title for screen readers."""
    buffer = io.StringIO()
    # The two settings that make the text reproducible are set here too, for figures without `apply_style`.
    with plt.rc_context({"svg.fonttype": STYLE["svg.fonttype"], "svg.hashsalt": STYLE["svg.hashsalt"]}):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    # Comments, line ends and indents are a quarter of the text in a notebook file, where each line is quoted.
    text = re.sub(r"<!--.*?-->", "", buffer.getvalue(), flags=re.DOTALL)
    text = re.sub(r"\s+", " ", re.sub(r">\s+<", "><", text))
    text = re.sub(r' style="[^"]*"', lambda match: re.sub(r"([:;]) ", r"\1", match[0]), text)
    text = LONG_COORDINATES.sub(lambda match: LONG_NUMBER.sub(r"\1", match[0]), text[text.index("<svg") :])
    # A hatch that is not clipped to its shape becomes a bitmap of the whole picture on paper, from Chromium a megabyte.
    text = text.replace('style="fill:url(#', 'style="clip-path:stroke-box;fill:url(#')
    label = escape(description, quote=True)
    tag, content = text.removeprefix("<svg ").split(">", 1)
    return f'<svg role="img" aria-label="{label}" {tag}>\n <title>{label}</title>{content}'


def show(figure: Figure, description: str) -> None:
    """Display a figure in a notebook with a text description, and close it.

    The description says what the picture shows to someone who cannot see it. It also replaces the picture where
    pictures cannot be displayed.
    """
    display({"image/svg+xml": svg(figure, description), "text/plain": description}, raw=True)
    plt.close(figure)


def show_widget(widget: "Widget", description: str) -> None:
    """Display a widget; `description` says what it does and replaces it where widgets cannot run."""
    display(widget._repr_mimebundle_() | {"text/plain": description}, raw=True)


def save(figure: Figure, file: Path | str, description: str) -> None:
    """Write a figure as SVG with its description, byte-equal when the same figure is drawn again, and close it."""
    text = svg(figure, description)
    Path(file).write_text('<?xml version="1.0" encoding="utf-8"?>\n' + text)
    plt.close(figure)
