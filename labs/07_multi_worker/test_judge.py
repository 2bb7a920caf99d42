"""Lab 07: other right answers, fixes after which a job starts, TensorFlow's own words, parts and workers."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from lab_07 import given, judge, sharding
from lab_07.judge import LAB

from distlab import cluster_spec
from distlab.runtime import processes
from tests.distlab.labs.judged_apart import printed_json
from tests.distlab.labs.known_wrong import assert_not_done, right_answers, verdict_on, wrong_answers
from tests.distlab.labs.solutions import namespace_of

SOLUTION = namespace_of("07", solved=True)["diagnosis"]

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


def is_chief(worker):
    first = worker.cluster.get("chief", worker.cluster["worker"])[0]
    return worker.cluster[worker.task_type][worker.index] == first


def with_a_stack(worker, model, accuracy, folder):
    with contextlib.ExitStack() as stack:
        place = folder if is_chief(worker) else Path(stack.enter_context(tempfile.TemporaryDirectory()))
        value = accuracy.result()
        model.save(place / "model.keras")
        (place / "accuracy.txt").write_text(str(value))


def with_threads(command, cluster):
    def run(task):
        config = {"cluster": cluster, "task": {"type": task[0], "index": task[1]}}
        return subprocess.run(command, env={**os.environ, "TF_CONFIG": json.dumps(config)}, check=False).returncode

    tasks = [(kind, index) for kind in cluster for index in range(len(cluster[kind]))]
    with ThreadPoolExecutor(len(tasks)) as pool:
        return list(pool.map(run, tasks))


test_another_right_answer_gets_full_marks = right_answers(
    LAB,
    ("start", with_threads),
    ("diagnosis", {letter: list(SOLUTION[letter]) for letter in "FEDCBA"}),
    ("save", with_a_stack),
)


@pytest.mark.parametrize("letter", given.BROKEN)
def test_a_broken_job_does_not_start(letter):
    with pytest.raises(cluster_spec.ClusterSpecError):
        cluster_spec.check_all(given.BROKEN[letter])


test_a_wrong_choice_costs_its_point_and_says_what_would_be_seen = wrong_answers(
    LAB,
    *(
        ("diagnosis", SOLUTION | {letter: (field, fix)}, 5 / 6, words)
        for letter, field, fix, words in (
            ("A", "task.index", "give every process a number of its own", judge.SYMPTOMS["A"][1]),
            ("C", "cluster.worker", "write the same list in every process", "the place is right; with this fix"),
            ("F", "task.type", "write the same list in every process", "cannot be done in task.type."),
        )
    ),
)


def test_a_partly_filled_diagnosis_earns_what_is_right():
    verdict = verdict_on(LAB, "diagnosis", {"diagnosis": {letter: SOLUTION[letter] for letter in "ABC"}})
    assert verdict.share == 0.5 and "D, E, F: not done yet" in verdict.text
    assert_not_done(LAB, "diagnosis", {"diagnosis": dict.fromkeys("ABCDEF", (None, None))})


@pytest.mark.slow
def test_the_table_is_what_tensorflow_does():
    runs = [([7, 12, 9, 4, 34], 2, 4), ([5, 6, 7, 8, 9, 10, 3], 3, 5), ([9], 2, 4), ([5, 3], 2, 3)]
    runs += [([5, 7], 2, 4), ([5, 7], 2, 8), ([13], 3, 5), ([10], 4, 5), ([7], 4, 6)]
    runs += [tuple(case[1:]) for case in [*sharding.FEW_CASES, *sharding.shards(np.random.default_rng(3))[:1]]]
    cases = [(policy, *run) for policy in sharding.POLICIES for run in runs]
    counts = printed_json([sys.executable, "-c", SHARD, json.dumps(cases)])
    assert counts == [sharding.samples_seen(*case) for case in cases]


@pytest.mark.slow
@pytest.mark.parametrize(("letter", "number"), [("A", 1), ("B", 1), ("D", 0)])
def test_a_recorded_message_is_tensorflows(letter, number):
    code = "import tensorflow as tf; tf.distribute.MultiWorkerMirroredStrategy()"
    environment = os.environ | {"TF_CONFIG": given.BROKEN[letter][number]}
    said = processes.run([sys.executable, "-c", code], 600, env=environment).output.splitlines()[-1]
    assert said.endswith(given.MESSAGES[letter][number])
