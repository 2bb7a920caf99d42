"""The smallest program that resumes exactly.

Type this line, stop the program at any moment, and type the line again:

    python minimal.py saves
"""

import sys
from collections.abc import Callable

import tensorflow as tf
from sklearn.datasets import load_digits

BATCH, SAVE_EVERY = 64, 5
digits, classes = load_digits(return_X_y=True)
count = len(digits) // BATCH * BATCH  # images in an epoch
images, labels = tf.constant(digits[:count] / 16, tf.float32), tf.constant(classes[:count])


def sample_at(position: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The order depends on the position alone, not on what an iterator has done before."""
    epoch, place = position // count, position % count
    index = tf.random.experimental.index_shuffle(place, [13, epoch], count - 1)
    return images[index], labels[index]


def train(folder: str, steps: int = 56, newest: Callable = tf.train.latest_checkpoint) -> list:
    """Train from the newest checkpoint in the folder to the last step; give the weights."""
    tf.keras.utils.set_random_seed(13)
    optimizer = tf.keras.optimizers.SGD(0.1, momentum=0.9)
    layers = [tf.keras.layers.Dense(128, activation="relu"), tf.keras.layers.Dense(10)]
    model = tf.keras.Sequential([tf.keras.layers.InputLayer((64,)), *layers])
    model.compile(optimizer, tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    optimizer.build(model.trainable_variables)  # creates the momentum, which is restored, too

    checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer)
    checkpoint.restore(newest(folder))  # restore(None) does nothing: the first start
    manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=2)
    first_step = int(optimizer.iterations)
    print(f"begins after step {first_step}", flush=True)
    samples = tf.data.Dataset.range(first_step * BATCH, steps * BATCH).map(sample_at)
    for step, batch in enumerate(samples.batch(BATCH), start=first_step + 1):
        loss = model.train_on_batch(*batch)
        if step % SAVE_EVERY == 0:
            manager.save(checkpoint_number=step)
    print(f"step {steps}: loss {loss:.4f}")
    return model.get_weights()


if __name__ == "__main__":
    train(sys.argv[1])
