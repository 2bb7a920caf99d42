"""Every rank trains one epoch with each program of chapter 09, saves, and resumes for a second; rank 0 tells what was.

Started by test_horovod_training.py: python horovod_resumed.py LABS FOLDER --result FILE
"""

import argparse
import importlib
import json
import sys
from pathlib import Path
from unittest import mock

import distlab  # noqa: F401  before TensorFlow: selects tf-keras

# isort: split
import horovod.tensorflow as hvd
import horovod.tensorflow.keras as hvd_keras

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
    program = importlib.import_module("train_keras")
    late = hvd_keras.callbacks.BroadcastGlobalVariablesCallback(0)
    with (
        mock.patch.object(program, "begin", lambda options, model: 0),
        mock.patch.object(program, "callbacks", lambda options: [late]),
    ):
        weights = program.train(program.parse([]))["weights"]
    result["late broadcast"] = {"of ranks": hvd.allgather_object(as_lists(weights))}
    program, serial = (importlib.import_module(name) for name in ("train_tape", "train_serial"))
    wrapped = mock.Mock(side_effect=lambda options: hvd_keras.DistributedOptimizer(serial.make_optimizer(options)))
    with mock.patch.multiple(program, step=serial.step, make_optimizer=wrapped):
        weights = program.train(program.parse([]))["weights"]
    result["optimizer wrapped, tape not"] = {"of ranks": hvd.allgather_object(as_lists(weights))}
    if hvd.rank() == 0:
        options.result.write_text(json.dumps(result))


if __name__ == "__main__":
    main()
