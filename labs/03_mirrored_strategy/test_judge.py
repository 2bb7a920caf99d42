"""Lab 03: other right answers, the auto-shard table against TensorFlow, mirrored programs in a process of their own."""

import json
import subprocess
import sys

import numpy as np
import pytest
from lab_03 import judge
from lab_03.judge import LAB, NUMBERS, POLICIES

from distlab.labs import reference_mlp
from tests.distlab.labs.judged_apart import assert_told_apart, judged_apart
from tests.distlab.labs.known_wrong import SEEDS, assert_right, verdict_on

SHARD = '''
import distlab, json, sys, tempfile
from pathlib import Path
import tensorflow as tf
from tensorflow.python.distribute import input_lib

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
            return [sum(map(len, given(pipeline, workers, worker))) for worker in range(workers)]
        except tf.errors.InvalidArgumentError:
            return None

def given(pipeline, workers, worker):
    """What `experimental_distribute_dataset` of MultiWorkerMirroredStrategy makes of a worker's pipeline."""
    context = tf.distribute.InputContext(workers, worker, num_replicas_in_sync=workers)
    alone = tf.distribute.OneDeviceStrategy("cpu:0")  # so that the other workers need not be there
    distributed = input_lib.DistributedDataset(
        input_lib.InputWorkers([("cpu:0", ["cpu:0"])]),
        alone,
        pipeline,
        num_replicas_in_sync=workers,
        input_context=context,
    )
    return distributed._cloned_datasets[0]

print(json.dumps([counts(*case) for case in json.loads(sys.argv[1])]))
'''


def by_counting(images, per_replica, replicas, epochs):
    batches, left = [], images
    while left > 0:
        batches.append(min(left, per_replica * replicas))
        left -= batches[-1]
    values = (per_replica * replicas, len(batches), sum(1 for _ in range(epochs) for _ in batches), batches[-1])
    return dict(zip(NUMBERS, values, strict=True))


def by_dealing(policy, files, workers, batch):
    numbers = [number for number, count in enumerate(files) for _ in range(count)]
    hands = [0] * workers
    if policy == "OFF":
        return [len(numbers) for _ in hands]
    if policy == "DATA":
        for start in range(0, len(numbers), batch):
            part = -(-len(numbers[start : start + batch]) // workers)
            for place in range(len(numbers[start : start + batch])):
                hands[place // part] += 1
        return tuple(hands)
    if workers > len(files):
        return None
    for number in numbers:
        hands[number % workers] += 1
    return hands


@pytest.mark.parametrize(("name", "answer"), [("numbers", by_counting), ("samples_seen", by_dealing)])
def test_another_right_answer_gets_full_marks(name, answer):
    for seed in SEEDS:
        assert_right(verdict_on(LAB, name, {name: answer}, seed))


def test_the_gradient_is_the_slope_of_the_loss():
    generator = np.random.default_rng(3)
    weights = [array.astype(np.float64) for array in reference_mlp.drawn_weights(generator)]
    images, labels = reference_mlp.drawn_batch(generator, 5)

    def loss():
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
def test_the_table_is_what_tensorflow_does():
    runs = [([7, 12, 9, 4, 34], 2, 4), ([5, 6, 7, 8, 9, 10, 3], 3, 5), ([9], 2, 4), ([5, 3], 2, 3)]
    runs += [([5, 7], 2, 4), ([5, 7], 2, 8), ([13], 3, 5), ([10], 4, 5), ([7], 4, 6)]
    runs += [tuple(case[1:]) for case in [*judge.FEW_CASES, *judge.shards(np.random.default_rng(3))[:1]]]
    cases = [(policy, *run) for policy in POLICIES for run in runs]
    command = [sys.executable, "-c", SHARD, json.dumps(cases)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert run.returncode == 0, run.stderr[-3000:]
    assert json.loads(run.stdout.splitlines()[-1]) == [judge.samples_seen(*case) for case in cases]


@pytest.mark.slow
def test_mirrored_programs_are_told_apart():
    assert_told_apart(judged_apart("03", "lab_03.known_answers"))
