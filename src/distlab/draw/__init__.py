"""Pictures in the course's one style: colour-blind safe, byte-equal when drawn again, each with a text description."""

from distlab.draw.plots import bars, utilisation
from distlab.draw.style import DASHES, MARKERS, RANK_COLOURS, apply_style, save, show

__all__ = ["DASHES", "MARKERS", "RANK_COLOURS", "apply_style", "bars", "save", "show", "utilisation"]
