"""The smallest program with parameter servers. Chief, workers and servers all run this file.

    distlab launch --workers 2 --parameter-servers 1 minimal.py

By hand, one terminal per process (under Slurm one task each: srun --ntasks=4), each with its
own task in TF_CONFIG, such as {"type": "chief", "index": 0}, and the same cluster:

    {"chief": ["localhost:1111"], "worker": ["localhost:2222", "localhost:3333"],
     "ps": ["localhost:4444"]}
"""

import os

os.environ["TF_USE_LEGACY_KERAS"] = "1"  # the strategy needs Keras 2: pip install tf-keras

import tensorflow as tf
from sklearn.datasets import load_digits

cluster = tf.distribute.cluster_resolver.TFConfigClusterResolver()
if cluster.task_type in ("worker", "ps"):  # these serve until somebody ends them
    threads = tf.compat.v1.ConfigProto(inter_op_parallelism_threads=4)  # servers + 1 at least
    task = {"job_name": cluster.task_type, "task_index": cluster.task_id}
    tf.distribute.Server(cluster.cluster_spec(), config=threads, **task).join()

strategy = tf.distribute.ParameterServerStrategy(cluster)  # from here on: the chief
digits, classes = load_digits(return_X_y=True)


def data_of_a_worker(context: tf.distribute.InputContext) -> tf.data.Dataset:
    """Each worker calls this once: all digits, in its own order, without an end."""
    samples = tf.data.Dataset.from_tensor_slices((digits / 16, classes))
    return samples.shuffle(len(digits)).repeat().batch(32)


with strategy.scope():  # the variables live on the servers
    layers = [tf.keras.layers.Dense(128, activation="relu"), tf.keras.layers.Dense(10)]
    model = tf.keras.Sequential([tf.keras.layers.InputLayer((64,)), *layers])
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer="sgd", loss=loss, metrics=["accuracy"])

data = tf.keras.utils.experimental.DatasetCreator(data_of_a_worker)
run = model.fit(data, epochs=3, steps_per_epoch=100, verbose=0)
for epoch, accuracy in enumerate(run.history["accuracy"], start=1):
    print(f"epoch {epoch}: accuracy {accuracy:.3f}")
print("the first kernel is on", model.weights[0].device)
