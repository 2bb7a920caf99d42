"""A custom training loop on several workers.

Type one of these lines in each of two terminals:

    python loop.py saved 0 localhost:12345 localhost:23456
    python loop.py saved 1 localhost:12345 localhost:23456
"""

import json
import os
import sys
import tempfile

os.environ["TF_USE_LEGACY_KERAS"] = "1"  # as in minimal.py: pip install tf-keras
if len(sys.argv) > 2:  # else the launcher has set TF_CONFIG
    index, *addresses = sys.argv[2:]
    task = {"type": "worker", "index": int(index)}
    os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": addresses}, "task": task})

import tensorflow as tf
from sklearn.datasets import load_digits

FOLDER, GLOBAL_BATCH_SIZE, STEPS = sys.argv[1], 48, 60

strategy = tf.distribute.MultiWorkerMirroredStrategy()  # before any other operation
resolver = strategy.cluster_resolver
has_chief = "chief" in resolver.cluster_spec().jobs
is_chief = resolver.task_type == "chief" if has_chief else resolver.task_id in (None, 0)
tf.keras.utils.set_random_seed(1)

digits, classes = load_digits(return_X_y=True)


def own_batches(context: tf.distribute.InputContext) -> tf.data.Dataset:
    """This worker's share of the samples, in batches for one replica."""
    samples = tf.data.Dataset.from_tensor_slices((digits / 16, classes))
    samples = samples.shard(context.num_input_pipelines, context.input_pipeline_id)
    return samples.repeat().batch(context.get_per_replica_batch_size(GLOBAL_BATCH_SIZE))


with strategy.scope():
    layers = [tf.keras.layers.Dense(128, activation="relu"), tf.keras.layers.Dense(10)]
    model = tf.keras.Sequential([tf.keras.layers.InputLayer((64,)), *layers])
    optimizer = tf.keras.optimizers.SGD(0.1)


def step(images: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    """One replica's part of an update; `apply_gradients` adds up those of all replicas."""
    with tf.GradientTape() as tape:
        logits = model(images, training=True)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        loss = tf.nn.compute_average_loss(losses, global_batch_size=GLOBAL_BATCH_SIZE)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return loss


@tf.function
def train_step(batch: tuple) -> tf.Tensor:
    """One update on all workers; the loss of the global batch."""
    return strategy.reduce("SUM", strategy.run(step, args=batch), axis=None)


batches = iter(strategy.distribute_datasets_from_function(own_batches))
losses = [float(train_step(next(batches))) for _ in range(STEPS)]
with tempfile.TemporaryDirectory() as scratch:
    place = FOLDER if is_chief else scratch
    tf.train.Checkpoint(model=model, optimizer=optimizer).write(f"{place}/state")  # all call
print(f"loss of step 1: {losses[0]:.3f}, of step {STEPS}: {losses[-1]:.3f}, chief: {is_chief}")
