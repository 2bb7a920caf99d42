"""The smallest multi-worker program.

Type one of these lines in each of two terminals:

    python minimal.py 0 localhost:12345 localhost:23456
    python minimal.py 1 localhost:12345 localhost:23456
"""

import json
import os
import sys

os.environ["TF_USE_LEGACY_KERAS"] = "1"  # fit needs Keras 2 here: pip install tf-keras
if len(sys.argv) > 1:  # else the launcher has set TF_CONFIG
    index, *addresses = sys.argv[1:]
    task = {"type": "worker", "index": int(index)}
    os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": addresses}, "task": task})

import tensorflow as tf
from sklearn.datasets import load_digits

strategy = tf.distribute.MultiWorkerMirroredStrategy()  # before any other operation
tf.keras.utils.set_random_seed(1)
global_batch_size = 24 * strategy.num_replicas_in_sync

digits, classes = load_digits(return_X_y=True)
sharding = tf.data.Options()
sharding.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
samples = tf.data.Dataset.from_tensor_slices((digits / 16, classes)).with_options(sharding)
train = samples.take(1500).shuffle(1500, seed=1).repeat().batch(global_batch_size)
test = samples.skip(1500).batch(global_batch_size)

with strategy.scope():
    layers = [tf.keras.layers.Dense(128, activation="relu"), tf.keras.layers.Dense(10)]
    model = tf.keras.Sequential([tf.keras.layers.InputLayer((64,)), *layers])
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer="adam", loss=loss, metrics=["accuracy"])

steps = 1500 // global_batch_size
run = model.fit(train, epochs=2, steps_per_epoch=steps, validation_data=test, verbose=0)
print(f"{strategy.num_replicas_in_sync} replicas;", end=" ")
print(*(f"{name} {values[-1]:.3f}" for name, values in run.history.items()), sep=", ")
