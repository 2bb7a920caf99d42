"""Large batches: schedules, the gradient noise scale, and the four numbers that change together.

Begin with `FourNumbers`, `schedules` and `global_batches` (which images are in which step). `noise_scale` tells how
large a batch is worth it. It may import runtime. ipywidgets, for the four numbers' panel, is imported only when it is
used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from distlab.large_batch import global_batches, noise_scale, schedules

if TYPE_CHECKING:
    from distlab.large_batch.four_numbers import FourNumbers, FourNumbersPanel

__all__ = ["FourNumbers", "FourNumbersPanel", "global_batches", "noise_scale", "schedules"]


def __getattr__(name: str) -> object:
    if name in ("FourNumbers", "FourNumbersPanel"):
        return getattr(import_module("distlab.large_batch.four_numbers"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
