"""The smallest multi-worker program with Keras 3: a custom loop, since `fit` does not work.

distlab launch --workers 2 minimal.py
"""

import keras
import tensorflow as tf
from sklearn.datasets import load_digits

strategy = tf.distribute.MultiWorkerMirroredStrategy()  # before any other operation
keras.utils.set_random_seed(1)
BATCH = 64  # of all workers together

digits, classes = load_digits(return_X_y=True)
samples = tf.data.Dataset.from_tensor_slices((digits / 16, classes))
batches = samples.shuffle(len(digits), seed=1).repeat().batch(BATCH)

with strategy.scope():
    layers = [keras.layers.Dense(128, activation="relu"), keras.layers.Dense(10)]
    model = keras.Sequential([keras.Input((64,)), *layers])
    optimizer = keras.optimizers.SGD(0.5)
    optimizer.build(model.trainable_variables)
loss_of_each = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction=None)


def on_replica(digits: tf.Tensor, classes: tf.Tensor) -> tf.Tensor:
    """One step of one worker."""
    with tf.GradientTape() as tape:
        losses = loss_of_each(classes, model(digits, training=True))
        loss = tf.nn.compute_average_loss(losses, global_batch_size=BATCH)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply(gradients, model.trainable_variables)  # sums over all workers
    return loss


@tf.function
def step(digits: tf.Tensor, classes: tf.Tensor) -> tf.Tensor:
    """One step of all workers; the loss of the global batch."""
    losses = strategy.run(on_replica, args=(digits, classes))
    return strategy.reduce("SUM", losses, axis=None)


distributed = strategy.experimental_distribute_dataset(batches)
for number, batch in zip(range(101), distributed, strict=False):
    loss = step(*batch)
    if number % 50 == 0:
        print(f"step {number}: loss {float(loss):.3f}")
