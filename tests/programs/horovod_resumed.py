"""Every rank trains one epoch with each program of chapter 09, saves, and resumes for a second; rank 0 tells what was.

Started by test_horovod.py: python horovod_resumed.py CHAPTER FOLDER --result FILE
"""

import importlib
import json
import sys
from pathlib import Path

import distlab  # noqa: F401  before TensorFlow: selects tf-keras

# isort: split
import horovod.tensorflow as hvd


def as_lists(weights: list) -> list:
    return [one.tolist() for one in weights]


chapter, folder, _, file = sys.argv[1:]
sys.path.insert(0, chapter)
hvd.init()
result = {}
for name in ("train_tape", "train_keras", "train_keras3"):
    program = importlib.import_module(name)
    own = Path(folder) / name / f"rank-{hvd.rank()}"  # so that only rank 0 has what it saved
    own.mkdir(parents=True)
    first = program.train(program.parse(["--folder", str(own)]))
    second = program.train(program.parse(["--folder", str(own), "--epochs", "2", "--resume"]))
    result[name] = {
        "first weights": as_lists(first["first_weights"]),
        "after one epoch": as_lists(first["weights"]),
        "resumed from": as_lists(second["first_weights"]),
        "of ranks": hvd.allgather_object(as_lists(second["weights"])),
    }
if hvd.rank() == 0:
    Path(file).write_text(json.dumps(result))
