"""The colour of a rank where it fills an area with text on it, and where it is a line on white."""

from matplotlib.colors import to_hex, to_rgb

from distlab.draw.diagram import tint
from distlab.draw.style import RANK_COLOURS


def fill_of(rank: int) -> str:
    """The rank's colour, light enough for dark text on it."""
    return to_hex(tint(RANK_COLOURS[rank % len(RANK_COLOURS)], 0.5))


def line_of(rank: int) -> str:
    """The rank's colour, dark enough for a thin line on white."""
    return to_hex([0.78 * part for part in to_rgb(RANK_COLOURS[rank % len(RANK_COLOURS)])])
