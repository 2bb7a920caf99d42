"""Sharded optimizers: data parallelism in which every rank holds only its share of the model's states (ZeRO).

    run = World(4).run(lambda rank: train(rank, layers, batches, stage=3))
    run.results[0].bytes_held, run.bytes_sent
    model_state_bytes(7.5e9, ranks=64, stage=3)          # the same by formula, for a model of any size

| module | what it holds |
|---|---|
| `program` | the training step of stages 0 to 3, which every rank runs |
| `adam` | the optimizer, on whole arrays or on shards |
| `memory` | bytes held and bytes sent by formula, with sources |
"""

from distlab.model_parallel.sharded_optimizers.adam import Adam, AdamState
from distlab.model_parallel.sharded_optimizers.memory import (
    MIXED_PRECISION_ADAM,
    SINGLE_PRECISION_ADAM,
    STAGES,
    BytesPerParameter,
    bytes_sent,
    model_state_bytes,
)
from distlab.model_parallel.sharded_optimizers.program import Trained, train, train_serially, whole_layers

__all__ = [
    "MIXED_PRECISION_ADAM",
    "SINGLE_PRECISION_ADAM",
    "STAGES",
    "Adam",
    "AdamState",
    "BytesPerParameter",
    "Trained",
    "bytes_sent",
    "model_state_bytes",
    "train",
    "train_serially",
    "whole_layers",
]
