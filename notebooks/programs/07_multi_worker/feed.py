"""Which samples does each worker get, by four policies and from its own data set?

On a laptop, two workers by the launcher. Each file holds one number per record:

    distlab launch --workers 2 feed.py -- --files numbers-*.tfrecord

By hand one terminal per worker, under Slurm one task each (`srun --ntasks=2`), with TF_CONFIG
set in each, for example

    C='{"worker": ["HOST0:PORT0", "HOST1:PORT1"]}'
    TF_CONFIG='{"cluster": '$C', "task": {"type": "worker", "index": 0}}'

The last line that each worker prints is JSON: for each way to feed, the numbers that it got.
"""

import argparse
import json

import tensorflow as tf

parser = argparse.ArgumentParser(description="Show which samples each worker gets.")
parser.add_argument("--files", nargs="+", required=True, help="TFRecord files of numbers")
files = parser.parse_args().files

strategy = tf.distribute.MultiWorkerMirroredStrategy()
tf.get_logger().setLevel("ERROR")  # AUTO explains its choice at length
GLOBAL_BATCH_SIZE = 2 * strategy.num_replicas_in_sync


def read_numbers() -> tf.data.Dataset:
    """The numbers in all files."""
    records = tf.data.TFRecordDataset(files)
    return records.map(lambda record: tf.strings.to_number(record, tf.int64))


def with_policy(name: str, seed: int | None = None) -> tf.distribute.DistributedDataset:
    """First way: one global data set, which the strategy divides among the workers."""
    numbers = read_numbers()
    if seed is not None:
        numbers = numbers.shuffle(1000, seed=seed)
    options = tf.data.Options()
    policy = tf.data.experimental.AutoShardPolicy[name]
    options.experimental_distribute.auto_shard_policy = policy
    batches = numbers.batch(GLOBAL_BATCH_SIZE).with_options(options)
    return strategy.experimental_distribute_dataset(batches)


def own_data(context: tf.distribute.InputContext) -> tf.data.Dataset:
    """Second way: each worker makes its own data set, with its share and its batch size."""
    numbers = read_numbers().shard(context.num_input_pipelines, context.input_pipeline_id)
    return numbers.batch(context.get_per_replica_batch_size(GLOBAL_BATCH_SIZE))


def own_data_not_sharded(context: tf.distribute.InputContext) -> tf.data.Dataset:
    """The same with the line forgotten that takes the worker's share."""
    return read_numbers().batch(context.get_per_replica_batch_size(GLOBAL_BATCH_SIZE))


ways = {policy: with_policy(policy) for policy in ("OFF", "DATA", "FILE", "AUTO")}
own_seed = strategy.cluster_resolver.task_id
ways["DATA, shuffled differently"] = with_policy("DATA", own_seed)
ways["from function"] = strategy.distribute_datasets_from_function(own_data)
not_sharded = strategy.distribute_datasets_from_function(own_data_not_sharded)
ways["from function, shard forgotten"] = not_sharded
numbers: dict[str, list[int]] = {name: [] for name in ways}
for name, batches in ways.items():
    for batch in batches:
        for part in strategy.experimental_local_results(batch):
            numbers[name] += part.numpy().tolist()
print(json.dumps(numbers))
