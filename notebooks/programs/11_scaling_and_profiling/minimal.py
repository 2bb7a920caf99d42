"""Count a rank's images and time its epochs; run it by `mpirun -np 2 python minimal.py`."""

import os
import tempfile
from time import perf_counter as now

os.environ["TF_USE_LEGACY_KERAS"] = "1"  # before TensorFlow: Horovod's `fit` needs Keras 2

import horovod.tensorflow.keras as hvd
import numpy as np
import tensorflow as tf
from horovod.tensorflow import broadcast_variables


class Images(tf.keras.metrics.Sum):
    """How many images the steps of an epoch have worked on."""

    def update_state(self, labels: tf.Tensor, *others: object, **weights: object) -> None:
        """Add one for each image of this batch."""
        super().update_state(tf.ones_like(labels))


hvd.init()
tf.config.threading.set_intra_op_parallelism_threads(1)  # a rank computes on one core
if gpus := tf.config.list_physical_devices("GPU"):
    own = gpus[hvd.local_rank() % len(gpus)]
    tf.config.set_visible_devices(own, "GPU")
    tf.config.experimental.set_memory_growth(own, True)
images = np.random.default_rng(hvd.rank()).random((5000 // hvd.size(), 28, 28, 1), np.float32)
train = tf.data.Dataset.from_tensor_slices((images, np.arange(len(images)) % 10))
layers = [tf.keras.layers.Conv2D(16, 3, activation="relu"), tf.keras.layers.MaxPooling2D()]
layers += [tf.keras.layers.Flatten(), tf.keras.layers.Dense(64, activation="relu")]
model = tf.keras.Sequential([*layers, tf.keras.layers.Dense(10)])
optimizer = hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.01 * hvd.size()))
loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizer, loss, metrics=[Images(name="images")])
model.build((None, 28, 28, 1))
broadcast_variables(model.variables, root_rank=0)
steps, ends, folder = 5000 // hvd.size() // 256, [], tempfile.TemporaryDirectory()
for way, save_freq in {"plain": None, "saving": "epoch", "rarer": 4 * steps}.items():
    callbacks = [tf.keras.callbacks.LambdaCallback(on_epoch_end=lambda *_: ends.append(now()))]
    if save_freq and hvd.rank() == 0:  # section 3; "rarer" saves in the fourth epoch
        saving = tf.keras.callbacks.ModelCheckpoint(folder.name, save_freq=save_freq)
        callbacks.insert(0, saving)
    how = {"steps_per_epoch": steps, "epochs": 6, "callbacks": callbacks, "verbose": 0}
    counts = np.int64(model.fit(train.batch(256).repeat(), **how).history["images"])
    seconds = np.mean(np.diff(ends[-5:]))  # without two epochs, with the first trace and save
    print(f"rank {hvd.rank()}: {steps} steps, {counts} images, {seconds:.3f} s, {way}")
