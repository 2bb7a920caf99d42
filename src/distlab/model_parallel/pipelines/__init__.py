"""Pipeline parallelism: the layers are on different devices, and a batch goes through them in micro-batches.

    orders("1f1b", stages=4, micro_batches=8)                  # what each stage does, pass after pass
    simulate("1f1b", 4, 8).bubble_fraction                     # the same on the virtual cluster, in virtual time
    bubble_fraction(4, 8)                                      # by formula

Begin with `schedules` (GPipe, 1F1B, interleaved 1F1B), then `program`, which every stage runs.
"""

from distlab.model_parallel.pipelines.formulas import activations_held, bubble_fraction, seconds
from distlab.model_parallel.pipelines.program import Timing, Work, simulate
from distlab.model_parallel.pipelines.schedules import BACKWARD, FORWARD, SCHEDULES, Pass, orders

__all__ = [
    "BACKWARD",
    "FORWARD",
    "SCHEDULES",
    "Pass",
    "Timing",
    "Work",
    "activations_held",
    "bubble_fraction",
    "orders",
    "seconds",
    "simulate",
]
