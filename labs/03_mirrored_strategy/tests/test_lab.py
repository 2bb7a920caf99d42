"""Lab 03: the judge's model and auto-shard table against TensorFlow; mirrored programs in a process of their own."""

import json
import subprocess
import sys

import numpy as np
import pytest
from lab_03 import auto_sharding

from distlab.labs import reference_mlp
from tests.distlab.labs.judged_apart import assert_told_apart, judged_apart

SHARD = """
import distlab, json, sys, tempfile
from pathlib import Path
import tensorflow as tf
from tensorflow.python.distribute import input_ops

def counts(policy, files, workers, batch):
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(Path(folder) / f"{number:03}") for number in range(len(files))]
        for path, images in zip(paths, files):
            with tf.io.TFRecordWriter(path) as writer:
                for image in range(images):
                    writer.write(b"x")
        options = tf.data.Options()
        options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy[policy]
        pipeline = tf.data.TFRecordDataset(paths).batch(batch).with_options(options)
        try:
            return [
                sum(len(batch) for batch in input_ops.auto_shard_dataset(pipeline, workers, worker))
                for worker in range(workers)
            ]
        except tf.errors.InvalidArgumentError:
            return None

print(json.dumps([counts(*case) for case in json.loads(sys.argv[1])]))
"""


def test_the_gradient_is_the_slope_of_the_loss() -> None:
    generator = np.random.default_rng(3)
    weights = [array.astype(np.float64) for array in reference_mlp.drawn_weights(generator)]
    images, labels = reference_mlp.drawn_batch(generator, 5)

    def loss() -> float:
        return 5 * reference_mlp.cross_entropy(reference_mlp.softmax(reference_mlp.logits(weights, images)), labels)

    for index, of_array in enumerate(reference_mlp.gradient(weights, images, labels)):
        place = np.unravel_index(np.argmax(np.abs(of_array)), of_array.shape)
        values = []
        for change in (1e-5, -2e-5):
            weights[index][place] += change
            values.append(loss())
        weights[index][place] += 1e-5
        assert (values[0] - values[1]) / 2e-5 == pytest.approx(of_array[place], rel=1e-4)


@pytest.mark.slow
def test_the_table_is_what_tensorflow_does() -> None:
    inputs = [([7, 12, 9, 4, 34], 2, 4), ([5, 6, 7, 8, 9, 10, 3], 3, 5), ([40, 20], 3, 4), ([9], 2, 4), ([5, 3], 2, 3)]
    inputs += [([5], 3, 2), ([5], 3, 8), ([6, 6], 3, 5), ([4, 4, 4], 2, 12), ([3, 4, 5], 3, 20), ([2, 2], 4, 1)]
    cases = [(policy, *case) for policy in auto_sharding.POLICIES for case in inputs]
    command = [sys.executable, "-c", SHARD, json.dumps(cases)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert run.returncode == 0, run.stderr[-3000:]
    assert json.loads(run.stdout.splitlines()[-1]) == [auto_sharding.samples_seen(*case) for case in cases]


@pytest.mark.long
def test_mirrored_programs_are_told_apart() -> None:
    assert_told_apart(judged_apart("03", "lab_03_tests.answers_03_mirrored"))
