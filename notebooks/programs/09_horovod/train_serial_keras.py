"""Train the lecture's network on one device with `fit`: where Horovod's programs start from.

On a laptop, or as a job of one task under Slurm:

    python train_serial_keras.py --folder saved
    srun --ntasks=1 python train_serial_keras.py --folder saved

Weights and optimizer are saved after each epoch; `--resume` goes on from there.
`train_keras.py` is the same program with Horovod.
"""

import argparse
import functools
from pathlib import Path

from distlab import data, models, saved_states  # before TensorFlow: it selects tf-keras

import numpy as np
import tensorflow as tf
from tensorflow import keras


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Train on one device with fit.")
    parser.add_argument("--dataset", choices=data.NAMES, default="digits")
    parser.add_argument("--images", type=int, default=1280, help="how many images to train on")
    parser.add_argument("--batch", type=int, default=32, help="images in a step")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--learning-rate", type=float, default=0.02)
    parser.add_argument("--seed", type=int, default=9)
    parser.add_argument("--folder", type=Path, help="for epochs; else none is saved")
    parser.add_argument("--resume", action="store_true", help="go on from the newest one")
    options = parser.parse_args(arguments)
    if options.folder and not options.resume:
        saved_states.check_unused(options.folder)
    return options


def batches(options: argparse.Namespace, epoch: int) -> tf.data.Dataset:
    """The batches of an epoch; their order is a function of seed and epoch."""
    images, labels = data.load(options.dataset).train
    order = np.random.default_rng([options.seed, epoch]).permutation(options.images)
    samples = tf.data.Dataset.from_tensor_slices((images[order], labels[order]))
    samples = samples.batch(options.batch, drop_remainder=True)
    return samples.repeat().take(steps_per_epoch(options))


def steps_per_epoch(options: argparse.Namespace) -> int:
    """Steps after which an epoch is over."""
    return options.images // options.batch


def make_optimizer(options: argparse.Namespace) -> keras.optimizers.Optimizer:
    """SGD with momentum."""
    return keras.optimizers.SGD(options.learning_rate, momentum=0.9)


def begin(options: argparse.Namespace, model: keras.Model) -> int:
    """Take the model from the newest epoch, if that is asked for; how many epochs are done."""
    epochs_done = 0
    if options.resume:
        newest = max(options.folder.glob("*.weights.h5"))
        model.load_weights(newest)
        epochs_done = int(newest.name.split(".")[0])
    return epochs_done


def callbacks(options: argparse.Namespace) -> list[keras.callbacks.Callback]:
    """What `fit` calls after each epoch."""
    called = []
    if options.folder:
        file = str(options.folder / "{epoch:04d}.weights.h5")
        called.append(keras.callbacks.ModelCheckpoint(file, save_weights_only=True))
    return called


def make_model() -> keras.Model:
    """The lecture's network without dropout."""
    return models.mlp(dropout=0.0)


def train(options: argparse.Namespace) -> dict:
    """Train; the history, and the weights."""
    keras.utils.set_random_seed(options.seed)
    model = make_model()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(make_optimizer(options), loss, metrics=["accuracy"])
    model.optimizer.build(model.trainable_variables)
    first = begin(options, model)
    if first >= options.epochs:
        raise SystemExit("All epochs are done; --epochs can ask for more.")
    of_epochs = [batches(options, epoch) for epoch in range(first, options.epochs)]
    samples = functools.reduce(tf.data.Dataset.concatenate, of_epochs)
    how = {"initial_epoch": first, "epochs": options.epochs, "callbacks": callbacks(options)}
    run = model.fit(samples, steps_per_epoch=steps_per_epoch(options), verbose=0, **how)
    return {"history": run.history, "weights": model.get_weights()}


def main() -> None:
    """Train, and say how it went."""
    history = train(parse())["history"]
    print(f"loss of the last epoch {history['loss'][-1]:.4f}")


if __name__ == "__main__":
    main()
