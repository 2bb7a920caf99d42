"""What the student works on in lab 09: the puzzle's lines and cards, the fake `hvd`, and `write` for the last cell."""

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from distlab.labs.answer import is_untouched
from distlab.labs.lab_09.fake_horovod import hvd

__all__ = ["CARDS", "LINES", "described", "hvd", "write"]

Function = Callable[..., Any]
FUNCTIONS = ("start", "batches", "steps_per_epoch", "make_optimizer", "begin", "step", "save")
"""The functions that the student writes."""

LINES = {
    "read options": "options = parse()",
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
    "pin by local rank": 'tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")',
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


def written(namespace: Mapping[str, Any], name: str) -> Function | None:
    """The student's function; None if there is none or it is untouched."""
    function = namespace.get(name)
    is_function = callable(function) and not is_untouched(getattr(function, "python_function", function))
    return function if is_function else None


def write(namespace: Mapping[str, Any], file: Path) -> None:
    """Write the student's functions, and those of the notebook that they call, to a file with Horovod as `hvd`."""
    sources: dict[str, str] = {}
    for name in FUNCTIONS:
        if (function := written(namespace, name)) is not None:
            _collect(namespace, name, function, sources)
    file.write_text(HEAD + "\n\n".join(sources.values()))


def _collect(namespace: Mapping[str, Any], name: str, function: Function, sources: dict[str, str]) -> None:
    function = getattr(function, "python_function", function)
    sources[name] = ""
    for used_name in function.__code__.co_names:
        called = getattr(namespace.get(used_name), "python_function", namespace.get(used_name))
        if used_name not in sources and inspect.isfunction(called) and called.__globals__ is function.__globals__:
            _collect(namespace, used_name, called, sources)
    del sources[name]
    sources[name] = inspect.getsource(function)  # after what it may need while it is defined
