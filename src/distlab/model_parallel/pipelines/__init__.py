"""Pipeline parallelism: the layers are on different devices, and a batch goes through them in micro-batches.

    orders("1f1b", stages=4, micro_batches=8)                  # what each stage does, pass after pass
    simulate("1f1b", 4, 8).bubble_fraction                     # the same on the virtual cluster, in virtual time
    bubble_fraction(4, 8)                                      # by formula
    World(4).run(lambda rank: pipeline(rank, orders, chunks))  # with a real network's layers (`DenseChunk`)

Begin with `schedules` (GPipe, 1F1B, interleaved 1F1B), then `program`, which every stage runs on its `chunks`.
"""

from distlab.model_parallel.pipelines.chunks import Chunk, DenseChunk, Timed
from distlab.model_parallel.pipelines.formulas import activations_held, bubble_fraction, gpipe_seconds, seconds
from distlab.model_parallel.pipelines.program import Timing, Work, pipeline, simulate
from distlab.model_parallel.pipelines.schedules import BACKWARD, FORWARD, SCHEDULES, Pass, orders

__all__ = [
    "BACKWARD",
    "FORWARD",
    "SCHEDULES",
    "Chunk",
    "DenseChunk",
    "Pass",
    "Timed",
    "Timing",
    "Work",
    "activations_held",
    "bubble_fraction",
    "gpipe_seconds",
    "orders",
    "pipeline",
    "seconds",
    "simulate",
]
