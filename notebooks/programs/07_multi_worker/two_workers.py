"""Let a function `start(command, cluster)` start two real workers, and compare their results.

The file has the function; lab 07 writes it:

    python two_workers.py start.py

Ports are chosen, so one machine is enough, without mpirun or Slurm. As
`python two_workers.py --worker FOLDER` it is a worker, takes its place from TF_CONFIG, and
leaves its result in the folder.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

from distlab import data, programs  # before TensorFlow: it selects tf-keras
from distlab.launch.job import free_addresses
from distlab.runtime import startup_notes

import numpy as np

STEPS, GLOBAL_BATCH_SIZE = 20, 48


def work(folder: Path) -> None:
    """Train on this worker's share, and write the loss of each step and the weights."""
    import tensorflow as tf

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    tf.get_logger().setLevel("ERROR")
    tf.keras.utils.set_random_seed(7)
    sharding = tf.data.Options()
    policy = tf.data.experimental.AutoShardPolicy.DATA
    sharding.experimental_distribute.auto_shard_policy = policy
    images, labels = data.load("digits").train
    samples = tf.data.Dataset.from_tensor_slices((images, labels)).with_options(sharding)
    samples = samples.repeat().batch(GLOBAL_BATCH_SIZE)
    with strategy.scope():
        flatten = tf.keras.layers.Flatten(input_shape=images.shape[1:])
        model = tf.keras.Sequential([flatten, tf.keras.layers.Dense(10)])
        model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    run = model.fit(samples, steps_per_epoch=STEPS, verbose=0)
    result = {
        "replicas": strategy.num_replicas_in_sync,
        "loss": run.history["loss"][-1],
        "weights": np.concatenate([each.ravel() for each in model.get_weights()]).tolist(),
    }
    resolver = strategy.cluster_resolver
    (folder / f"{resolver.task_type} {resolver.task_id}").write_text(json.dumps(result))


def compare(file: Path) -> None:
    """Start two workers by the function in a file, and print their results."""
    cluster = {"worker": free_addresses(2)}
    with tempfile.TemporaryDirectory() as name:
        with startup_notes.hidden():
            command = [sys.executable, __file__, "--worker", name]
            codes = programs.module(file).start(command, cluster)
        print("exit codes:", codes)
        files = sorted(Path(name).iterdir())
        results = {path.name: json.loads(path.read_text()) for path in files}
    for task, result in results.items():
        loss = f"mean loss of {STEPS} steps {result['loss']:.4f}"
        print(f"{task}: {result['replicas']} replicas, {loss}")
    if len(results) == 2:
        pairs = zip(*(result["weights"] for result in results.values()), strict=True)
        difference = max(abs(one - other) for one, other in pairs)
        print(f"largest difference of their weights: {difference}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Start two workers with a function.")
    either = parser.add_mutually_exclusive_group(required=True)
    either.add_argument("file", nargs="?", type=Path, help="with `start(command, cluster)`")
    either.add_argument("--worker", type=Path, help="be a worker, and write to this folder")
    options = parser.parse_args()
    if options.worker:
        work(options.worker)
    else:
        compare(options.file)
