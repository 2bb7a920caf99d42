"""What the student works on in lab 09: the puzzle's lines and cards, the fake `hvd`, and `write` for the last cell."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from distlab.labs.fake_horovod import hvd
from distlab.labs.student_programs import text_of

__all__ = ["CARDS", "LINES", "described", "hvd", "write"]

FUNCTIONS = ("start", "batches", "steps_per_epoch", "make_optimizer", "begin", "step", "save")
"""The functions that the student writes."""

LINES = {
    "read options": "options = parse(); rate, steps = options.rate, options.steps",
    "load": "images, labels = load(options.dataset)              # arrays in memory",
    "model": "model = make_model()                                # TensorFlow takes its devices here",
    "optimizer": "optimizer = SGD(rate)                               # keeps the value that rate has now",
    "slots": "optimizer.build(model.trainable_variables)          # its momentum exists from here",
    "restore": "restore(model, optimizer, options.folder)           # the newest checkpoint, if there is one",
    "shuffle": "samples = shuffled(images, labels, seed)            # the same order in every process",
    "batch": "batches = samples.batch(batch_size)                 # batch_size is 32",
    "steps": "for batch in batches.take(steps):                   # the loop, with the three lines below",
    "loss": "    with tf.GradientTape() as tape: loss = loss_of(model, batch)",
    "gradients": "    gradients = tape.gradient(loss, model.trainable_variables)",
    "apply": "    optimizer.apply_gradients(...)",
    "save": "checkpoint.save(options.folder)                     # after the loop",
}
"""The serial program."""

CARDS = {
    "init": "hvd.init()",
    "pin by rank": 'tf.config.set_visible_devices(gpus[hvd.rank()], "GPU")',
    "pin by local rank": 'tf.config.set_visible_devices(gpus[hvd.local_rank() % len(gpus)], "GPU")',
    "rate by size": "rate = rate * hvd.size()",
    "rate by local size": "rate = rate * hvd.local_size()",
    "wrap the tape": "tape = hvd.DistributedGradientTape(tape)",
    "broadcast": "hvd.broadcast_variables([all variables of model and optimizer], root_rank=0)",
    "only rank 0": "if hvd.rank() == 0:                                 # guards the next line",
    "only local rank 0": "if hvd.local_rank() == 0:                           # guards the next line",
    "shard": "samples = samples.shard(hvd.size(), hvd.rank())",
    "batch by size": "batch_size = batch_size * hvd.size()",
    "steps by size": "steps = steps // hvd.size()",
    "steps by local size": "steps = steps // hvd.local_size()",
}
"""What can be laid between the lines; five are not steps of Horovod's."""

HEAD = '''"""The eight steps, written in the lab."""

import argparse
from pathlib import Path

import distlab
import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

from distlab import data, models

mean_loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

'''


def described(texts: Mapping[str, str]) -> str:
    """Lines or cards with their names, for the notebook."""
    return "\n".join(f"{name:<20} {text}" for name, text in texts.items())


def write(namespace: Mapping[str, Any], file: Path) -> None:
    """Write the student's functions, and those of the notebook that they call, to a file with Horovod as `hvd`."""
    file.write_text(HEAD + text_of(namespace, FUNCTIONS))
