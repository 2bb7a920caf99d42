"""The smallest multi-worker program.

Type one of these lines in each of two terminals:

    python minimal.py --index 0 --workers localhost:12345 localhost:23456
    python minimal.py --index 1 --workers localhost:12345 localhost:23456

Without the two options it takes TF_CONFIG from the environment, which `distlab launch --workers 2 minimal.py` sets.
Under Slurm the index is the task's rank: `srun --ntasks=2 bash -c 'python minimal.py --index $SLURM_PROCID …'`.
"""

import argparse
import json
import os

from distlab import cluster_spec, data  # before TensorFlow: it selects tf-keras

# isort: split
import tensorflow as tf

parser = argparse.ArgumentParser(description="Train a CNN on several workers.")
parser.add_argument("--index", type=int, help="which of --workers this process is, from 0")
parser.add_argument("--workers", nargs="+", metavar="HOST:PORT", help="the addresses of all workers")
options = parser.parse_args()
if options.workers:
    task = {"type": "worker", "index": options.index}
    os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": options.workers}, "task": task})
    cluster_spec.check(os.environ["TF_CONFIG"])  # a mistake in it would end in a long error of TensorFlow

strategy = tf.distribute.MultiWorkerMirroredStrategy()  # before any other TensorFlow operation
global_batch_size = 24 * strategy.num_replicas_in_sync

sharding = tf.data.Options()
sharding.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
images, labels = data.load("digits").train
samples = tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(len(images), seed=1)
batches = samples.repeat().batch(global_batch_size).with_options(sharding)

with strategy.scope():
    model = tf.keras.Sequential(
        [
            tf.keras.layers.Reshape((28, 28, 1), input_shape=(28, 28)),
            tf.keras.layers.Conv2D(32, 3, activation="relu"),
            tf.keras.layers.Flatten(),
            tf.keras.layers.Dense(10),
        ]
    )
    model.compile(
        optimizer=tf.keras.optimizers.SGD(0.05),
        loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
history = model.fit(batches, epochs=2, steps_per_epoch=len(images) // global_batch_size, verbose=0).history
print(f"{strategy.num_replicas_in_sync} replicas, loss of each epoch:", [round(loss, 2) for loss in history["loss"]])
