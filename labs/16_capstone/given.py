"""What the student works with in lab 16: the fake `hvd`, examples, and `write` for the run on real ranks."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from distlab.labs.fake_horovod import hvd
from distlab.labs.student_programs import text_of

__all__ = ["MEASURED", "REPORT", "TIMELINE", "hvd", "write"]

MEASURED = {
    1: [(300, 2.0), (300, 0.3), (300, 0.3), (100, 0.1), (300, 0.3)],
    4: [(300, 3.0), (300, 0.1), (300, 0.6), (100, 0.05), (300, 0.1)],
}
"""Steps on 1 and on 4 ranks; the first of each is the warm-up."""

_EVENTS: list[tuple[int, str, float, float]] = [
    (0, "input", 0.0, 5.0),
    (0, "computing", 5.0, 40.0),
    (0, "all-reduce", 40.0, 60.0),
    (1, "input", 61.0, 62.0),
    (1, "computing", 62.0, 65.0),
    (1, "computing", 65.5, 69.5),
    (1, "all-reduce", 68.5, 71.0),
]
TIMELINE: list[dict[str, Any]] = [
    {"step": step, "name": name, "start": start, "end": end} for step, name, start, end in _EVENTS
]
"""Two steps of a rank."""

REPORT = ("equality", "throughput", "profile", "prediction", "job", "limits")
"""The parts of the report."""

HEAD = '''"""The capstone's program, written in the lab: train_serial.py on ranks."""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

from distlab import data, models  # before TensorFlow: it selects tf-keras

# isort: split
import tensorflow as tf

loss_of_each = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")

'''
HOROVOD = "import horovod.tensorflow as hvd\n"


def write(namespace: Mapping[str, Any], file: Path) -> None:
    """Write `train`, and what it calls of the notebook, to a file; with Horovod as `hvd` if it uses that."""
    functions = text_of(namespace, ["train"])
    with_horovod = HEAD.replace("import tensorflow as tf\n", HOROVOD + "import tensorflow as tf\n")
    file.write_text((with_horovod if "hvd." in functions else HEAD) + functions)
