"""Pipeline parallelism: the layers lie on different devices, and a batch goes through them in micro-batches.

    orders("1f1b", stages=4, micro_batches=8)                  # what each stage does, pass after pass
    simulate("1f1b", 4, 8).bubble_fraction                     # the same on the virtual cluster, in virtual time
    bubble_fraction(4, 8)                                      # by formula
    World(4).run(lambda rank: pipeline(rank, orders, chunks))  # with a real network's layers (`DenseChunk`)

| module | what it holds |
|---|---|
| `orders` | the schedules GPipe, 1F1B and interleaved 1F1B |
| `program` | the program that every stage runs |
| `chunks` | what a stage holds: layers, or only their time |
| `timing` | a schedule's time line, bubble and memory on the virtual cluster |
| `formulas` | the same by formula, with sources |
"""

from distlab.model_parallel.pipelines.chunks import DenseChunk, Timed
from distlab.model_parallel.pipelines.formulas import activations_held, bubble_fraction, gpipe_seconds, seconds
from distlab.model_parallel.pipelines.orders import BACKWARD, FORWARD, SCHEDULES, Pass, orders
from distlab.model_parallel.pipelines.program import Chunk, Work, pipeline
from distlab.model_parallel.pipelines.timing import Timing, simulate

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
