"""Classify short texts by topic, on one device: the program that the capstone distributes.

    python train_serial.py --texts 4000 --batch 256 --epochs 3 --folder saved

Each epoch has every text once, in another order; its last batch may be smaller than the
others. A checkpoint is written after each epoch, and `--resume` goes on from the newest one.
"""

import argparse
import time
from pathlib import Path

import numpy as np

from distlab import checks, data, models, saved_states  # first: it selects tf-keras

# isort: split
import tensorflow as tf

losses = tf.keras.losses
loss_of_each = losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Classify texts on one device.")
    parser.add_argument("--texts", type=int, default=4000, help="how many texts to train on")
    parser.add_argument("--batch", type=int, default=256, help="texts in a step")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--rate", type=float, default=0.5, help="for this batch")
    parser.add_argument("--units", type=int, default=64, help="numbers in a word's vector")
    parser.add_argument("--seed", type=int, default=16)
    parser.add_argument("--folder", type=Path, help="for checkpoints; else none is saved")
    parser.add_argument("--resume", action="store_true", help="go on from the newest one")
    options = parser.parse_args(arguments)
    if options.resume and not options.folder:
        parser.error("--resume needs --folder")
    if options.folder and not options.resume:
        saved_states.check_unused(options.folder)
    return options


def batches(options: argparse.Namespace, epoch: int) -> tf.data.Dataset:
    """Batches of (words, labels); the order is a function of seed and epoch."""
    words, labels = data.topics.texts(options.texts, options.seed)
    order = np.random.default_rng([options.seed, epoch]).permutation(options.texts)
    texts = tf.data.Dataset.from_tensor_slices((words[order], labels[order]))
    return texts.batch(options.batch)


def begin(options: argparse.Namespace) -> tf.train.Checkpoint:
    """A new model and its optimizer or, if asked for, what the newest checkpoint has."""
    model = models.text_classifier(options.units)
    optimizer = tf.keras.optimizers.SGD(options.rate, momentum=0.9)
    optimizer.build(model.trainable_variables)
    epochs_done = tf.Variable(0, dtype=tf.int64)
    state = tf.train.Checkpoint(model=model, optimizer=optimizer, epochs_done=epochs_done)
    if options.resume:
        newest = tf.train.latest_checkpoint(options.folder)
        state.restore(newest).assert_existing_objects_matched()
    return state


@tf.function(reduce_retracing=True)
def step(state: tf.train.Checkpoint, words: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    """Change the weights once; the loss before."""
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(loss_of_each(labels, state.model(words, training=True)))
    gradients = tape.gradient(loss, state.model.trainable_variables)
    pairs = zip(gradients, state.model.trainable_variables, strict=True)
    state.optimizer.apply_gradients(pairs)
    return loss


def save(options: argparse.Namespace, state: tf.train.Checkpoint) -> None:
    """Write a checkpoint, if there is a folder for it."""
    if options.folder:
        state.save(str(options.folder / "checkpoint"))


def train(options: argparse.Namespace) -> tuple[tf.train.Checkpoint, list[dict]]:
    """Train; the state at the end, and of each step its texts, its loss and its seconds."""
    state, steps = begin(options), []
    for epoch in range(int(state.epochs_done), options.epochs):
        for words, labels in batches(options, epoch):
            start = time.perf_counter()
            loss = float(step(state, words, labels))
            seconds = time.perf_counter() - start
            steps.append({"texts": len(labels), "loss": loss, "seconds": seconds})
        state.epochs_done.assign_add(1)
        save(options, state)
    return state, steps


def main() -> None:
    """Train, and say how it went."""
    options = parse()
    if options.resume and (newest := saved_states.newest(options.folder)):
        print(f"The newest checkpoint in {options.folder} is {newest}.", flush=True)
    _, steps = train(options)
    if steps:
        checks.end_unless_finite(len(steps), steps[-1]["loss"], option="--rate")
        print(f"{len(steps)} steps, last loss {steps[-1]['loss']:.4f}")
    else:
        print("All epochs are done; --epochs can ask for more.")


if __name__ == "__main__":
    main()
