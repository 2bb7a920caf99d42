"""Train the lecture's network on one device, in a loop: where Horovod's program starts from.

On a laptop, or as a job of one task under Slurm:

    python train_serial.py --folder saved
    srun --ntasks=1 python train_serial.py --folder saved

A checkpoint is written after each epoch; `--resume` goes on from the newest one.
`train_tape.py` is the same program with Horovod: each function that differs is one step.
"""

import argparse
from pathlib import Path

from distlab import data, models, saved_states  # before TensorFlow: it selects tf-keras

import numpy as np
import tensorflow as tf

mean_loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Train the lecture's network on one device.")
    parser.add_argument("--dataset", choices=data.NAMES, default="digits")
    parser.add_argument("--images", type=int, default=1280, help="how many images to train on")
    parser.add_argument("--batch", type=int, default=32, help="images in a step")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--learning-rate", type=float, default=0.02)
    parser.add_argument("--seed", type=int, default=9)
    parser.add_argument("--folder", type=Path, help="for checkpoints; else none is saved")
    parser.add_argument("--resume", action="store_true", help="go on from the newest one")
    options = parser.parse_args(arguments)
    if options.folder and not options.resume:
        saved_states.check_unused(options.folder)
    return options


def batches(options: argparse.Namespace, epoch: int) -> tf.data.Dataset:
    """(Numbers, images, labels) of an epoch in batches, in an order by seed and epoch."""
    images, labels = data.load(options.dataset).train
    order = np.random.default_rng([options.seed, epoch]).permutation(options.images)
    samples = tf.data.Dataset.from_tensor_slices((order, images[order], labels[order]))
    return samples.batch(options.batch, drop_remainder=True).repeat()


def steps_per_epoch(options: argparse.Namespace) -> int:
    """Steps after which an epoch is over."""
    return options.images // options.batch


def make_optimizer(options: argparse.Namespace) -> tf.keras.optimizers.Optimizer:
    """SGD with momentum."""
    return tf.keras.optimizers.SGD(options.learning_rate, momentum=0.9)


def begin(options: argparse.Namespace, state: tf.train.Checkpoint) -> None:
    """Take the state from the newest checkpoint, if that is asked for."""
    if options.resume:
        newest = tf.train.latest_checkpoint(options.folder)
        state.restore(newest).assert_existing_objects_matched()


@tf.function(autograph=False)  # there is no loop or condition to translate
def step(state: tf.train.Checkpoint, images: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    """Change the weights once; the loss before."""
    with tf.GradientTape() as tape:
        loss = mean_loss(labels, state.model(images, training=True))
    gradients = tape.gradient(loss, state.model.trainable_variables)
    pairs = zip(gradients, state.model.trainable_variables, strict=True)
    state.optimizer.apply_gradients(pairs)
    return loss


def save(options: argparse.Namespace, state: tf.train.Checkpoint) -> None:
    """Write a checkpoint, if there is a folder for it."""
    if options.folder:
        state.save(str(options.folder / "checkpoint"))


def train(options: argparse.Namespace, first_weights: list[np.ndarray] | None = None) -> dict:
    """Train, from these first weights if they are given; losses, samples and weights."""
    tf.keras.utils.set_random_seed(options.seed)
    model, optimizer = models.mlp(dropout=0.0), make_optimizer(options)
    optimizer.build(model.trainable_variables)
    if first_weights:
        model.set_weights(first_weights)
    epochs_done = tf.Variable(0, dtype=tf.int64)
    state = tf.train.Checkpoint(model=model, optimizer=optimizer, epochs_done=epochs_done)
    begin(options, state)
    losses, seen = [], []
    for epoch in range(int(state.epochs_done), options.epochs):
        for numbers, images, labels in batches(options, epoch).take(steps_per_epoch(options)):
            losses.append(float(step(state, images, labels)))
            seen.append(numbers.numpy().tolist())
        state.epochs_done.assign(epoch + 1)
        save(options, state)
    return {"losses": losses, "seen": seen, "weights": model.get_weights()}


def main() -> None:
    """Train, and say how it went."""
    losses = train(parse())["losses"]
    if not losses:
        raise SystemExit("All epochs are done; --epochs can ask for more.")
    print(f"{len(losses)} steps, last loss {losses[-1]:.4f}")


if __name__ == "__main__":
    main()
