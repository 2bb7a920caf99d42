"""What two real workers are given under each auto-shard policy, next to what lab 03 says."""

import json
import os
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
import tensorflow as tf
from lab_03 import judge

POLICIES = ("OFF", "DATA", "FILE", "AUTO")
FILES, PER_FILE, WORKERS, BATCH = 8, 4, 2, 5  # an odd number: the parts of a batch differ
DEADLINE = 180

PIPELINE = """
import tensorflow as tf

def pipeline(files, batch, policy):
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy[policy]
    numbers = tf.data.TFRecordDataset(files).map(lambda record: tf.io.decode_raw(record, tf.uint8)[0])
    return numbers.batch(batch).with_options(options)
"""

WORKER = f"""
import distlab, json, sys
{PIPELINE}
strategy = tf.distribute.MultiWorkerMirroredStrategy()
given = {{}}
for policy in {POLICIES!r}:
    batches = strategy.experimental_distribute_dataset(pipeline(sys.argv[1:], {BATCH}, policy))
    parts = [part for batch in batches for part in strategy.experimental_local_results(batch)]
    given[policy] = [int(number) for part in parts for number in part]
print(json.dumps(given))
"""


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Small TFRecord files; each record is the number of a sample."""
    paths = [str(tmp_path / f"{file}.tfrecord") for file in range(FILES)]
    for file, path in enumerate(paths):
        with tf.io.TFRecordWriter(path) as writer:
            for number in range(file * PER_FILE, (file + 1) * PER_FILE):
                writer.write(bytes([number]))
    return paths


def free_addresses(count: int) -> list[str]:
    """Addresses on this machine where nobody listens."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for holder in sockets:
            holder.bind(("127.0.0.1", 0))
        return [f"127.0.0.1:{holder.getsockname()[1]}" for holder in sockets]


def given_to_real_workers(files: list[str]) -> list[dict[str, list[int]]]:
    """What each of two processes under MultiWorkerMirroredStrategy is given, under each policy."""
    cluster = {"worker": free_addresses(WORKERS)}
    configs = [json.dumps({"cluster": cluster, "task": {"type": "worker", "index": i}}) for i in range(WORKERS)]
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, *files],
            env=os.environ | {"TF_CONFIG": config, "CUDA_VISIBLE_DEVICES": "-1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for config in configs
    ]
    try:
        return [json.loads(process.communicate(timeout=DEADLINE)[0].splitlines()[-1]) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()


@pytest.mark.long
def test_two_real_workers_are_given_as_many_images_as_the_lab_says(files: list[str]) -> None:
    given = given_to_real_workers(files)
    for policy in POLICIES:
        counts = judge.samples_seen(policy, [PER_FILE] * FILES, WORKERS, BATCH)
        assert [len(numbers[policy]) for numbers in given] == counts
    assert [numbers["DATA"][:4] for numbers in given] == [[0, 1, 2, 5], [3, 4, 8, 9]]
