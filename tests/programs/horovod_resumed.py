"""Every rank trains one epoch with each program of chapter 09, saves, and resumes for a second; rank 0 tells what was.

Started by test_horovod.py: python horovod_resumed.py LABS FOLDER --result FILE
"""

import argparse
import importlib
import json
import sys
from pathlib import Path

import distlab  # noqa: F401  before TensorFlow: selects tf-keras

# isort: split
import horovod.tensorflow as hvd

PROGRAMS = {"tape": "train_tape", "Keras": "train_keras", "Keras 3": "train_keras3"}


def as_lists(weights: list) -> list:
    return [one.tolist() for one in weights]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("chapter_folder", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--result", type=Path)
    options = parser.parse_args()
    sys.path.insert(0, str(options.chapter_folder))
    hvd.init()
    result = {}
    for name, module_name in PROGRAMS.items():
        program = importlib.import_module(module_name)
        own = options.folder / module_name / f"rank-{hvd.rank()}"  # so that only rank 0 has what it saved
        own.mkdir(parents=True)
        first = program.train(program.parse(["--folder", str(own)]))
        second = program.train(program.parse(["--folder", str(own), "--epochs", "2", "--resume"]))
        result[name] = {
            "first weights": as_lists(first["first_weights"]),
            "after one epoch": as_lists(first["weights"]),
            "resumed from": as_lists(second["first_weights"]),
            "of ranks": hvd.allgather_object(as_lists(second["weights"])),
            "folder": str(own.parent),
        }
    if hvd.rank() == 0:
        options.result.write_text(json.dumps(result))


if __name__ == "__main__":
    main()
