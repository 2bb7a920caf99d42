"""Train five seeds without and with warm-up on MNIST, for machines without MNIST.

    python five_seeds.py --record

writes recorded/mnist.json in a minute or two. Batch and images give 14 steps per epoch, as in
the tutorial. The data set of the record was a file with 10,000 of MNIST's images, 8,000 for
training and 2,000 for the test.
"""

import argparse
from pathlib import Path

from distlab import data, models, recorded_results

import numpy as np
import one_process
import tensorflow as tf

FOLDER = Path(__file__).parent / "recorded"
IMAGES, GLOBAL_BATCH, EPOCHS = 8_000, 560, 6
Accuracies = dict[str, list[list[float]]]


def train() -> dict[str, Accuracies]:
    """For each schedule the test accuracy after each epoch, one row per seed."""
    training = one_process.OneProcess("mnist", lambda: models.cnn(8), images=IMAGES)
    accuracies = {}
    for name in ("none", "gradual"):
        of_seeds = training.accuracies(name, GLOBAL_BATCH, EPOCHS)
        accuracies[name] = of_seeds.round(4).tolist()
    return {"accuracies": accuracies}


def measured_or_recorded() -> tuple[Accuracies, str]:
    """The accuracies, measured if MNIST is on this machine; and where they come from."""
    if data.find("mnist"):
        return train()["accuracies"], "measured here"
    record = recorded_results.read("mnist", FOLDER)
    return record.result["accuracies"], record.source()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Train five seeds on MNIST, twice.")
    parser.add_argument("--record", action="store_true", help="write recorded/mnist.json")
    is_record, result = parser.parse_args().record, train()
    print(result)
    if is_record:
        versions = {"tensorflow": tf.__version__, "numpy": np.__version__}
        what = "five_seeds.py", ["--record"], result
        command = "python five_seeds.py --record"
        recorded_results.write("mnist", "TensorFlow", versions, command, *what, folder=FOLDER)
