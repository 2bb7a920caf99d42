"""Large batches: schedules, optimizers, the gradient noise scale, and the four numbers that change together.

Begin with `FourNumbers`, `schedules` and `global_batches` (which images are in which step). `noise_scale` tells how
large a batch is worth it, `quiz` asks questions about the four numbers. It may import runtime. TensorFlow (for LARS and
LAMB) and ipywidgets (for the four numbers' panel) are imported only when they are used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from distlab.large_batch import global_batches, noise_scale, schedules

if TYPE_CHECKING:
    from distlab.large_batch import quiz
    from distlab.large_batch.four_numbers import FourNumbers, FourNumbersPanel
    from distlab.large_batch.optimizers import LAMB, LARS

__all__ = [
    "LAMB",
    "LARS",
    "FourNumbers",
    "FourNumbersPanel",
    "global_batches",
    "noise_scale",
    "quiz",
    "schedules",
]

_LAZY = {"LAMB": "optimizers", "LARS": "optimizers", "FourNumbers": "four_numbers", "FourNumbersPanel": "four_numbers"}


def __getattr__(name: str) -> object:
    if name == "quiz":
        return import_module("distlab.large_batch.quiz")
    if name in _LAZY:
        return getattr(import_module(f"distlab.large_batch.{_LAZY[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
