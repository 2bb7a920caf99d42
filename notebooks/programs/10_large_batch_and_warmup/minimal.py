"""The smallest large-batch program: a scaled rate with warm-up and decay, AdamW, clipping.

horovodrun -np 2 --gloo python minimal.py
"""

import os

os.environ["TF_USE_LEGACY_KERAS"] = "1"  # Keras 2, for Horovod: pip install tf-keras

import horovod.tensorflow.keras as hvd
import tensorflow as tf
from horovod.tensorflow import broadcast_variables
from sklearn.datasets import load_digits

hvd.init()
if gpus := tf.config.list_physical_devices("GPU"):
    own = gpus[hvd.local_rank() % len(gpus)]
    tf.config.set_visible_devices(own, "GPU")
    tf.config.experimental.set_memory_growth(own, True)

batch, rate, epochs = 32, 0.004, 8  # batch and rate are right for one rank
tf.keras.utils.set_random_seed(hvd.rank())
digits, classes = load_digits(return_X_y=True)
samples = tf.data.Dataset.from_tensor_slices((digits / 16, classes))
train = samples.take(1500).shard(hvd.size(), hvd.rank()).shuffle(1500).repeat().batch(batch)

steps = 1500 // (batch * hvd.size())  # per epoch: nearly each image once, on one rank
scaled = rate * hvd.size() ** 0.5  # the square-root rule of section 3
schedule = tf.keras.optimizers.schedules.CosineDecay(
    rate, decay_steps=(epochs - 2) * steps, warmup_target=scaled, warmup_steps=2 * steps
)
optimizer = tf.keras.optimizers.AdamW(schedule, weight_decay=0.01, global_clipnorm=1.0)
layers = [tf.keras.layers.Dense(128, activation="relu"), tf.keras.layers.Dense(10)]
model = tf.keras.Sequential([tf.keras.layers.InputLayer((64,)), *layers])
loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(hvd.DistributedOptimizer(optimizer), loss, metrics=["accuracy"])
broadcast_variables(model.variables, root_rank=0)  # before fit (chapter 09); AdamW's are 0
model.fit(train, epochs=epochs, steps_per_epoch=steps, verbose=0)
if hvd.rank() == 0:
    rates = " ".join(f"{1000 * schedule(epoch * steps):.1f}" for epoch in range(epochs + 1))
    _, accuracy = model.evaluate(samples.skip(1500).batch(297), verbose=0)
    print(f"{hvd.size()} ranks, {steps} steps/epoch, test accuracy {accuracy:.3f};", end=" ")
    print(f"rates × 1000: {rates}")
