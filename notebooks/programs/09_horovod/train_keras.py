"""Train the lecture's network with Horovod and `fit` of tf-keras: one process per device.

On a laptop, two ranks over Gloo or over MPI; on two hosts with four slots each; under Slurm in
a batch script or after `salloc --nodes=2 --ntasks-per-node=4`:

    horovodrun -np 2 --gloo python train_keras.py --folder saved
    mpirun -np 2 -bind-to none python train_keras.py --folder saved
    horovodrun -np 8 -H host0:4,host1:4 python train_keras.py --folder saved
    srun --mpi=pmix python train_keras.py --folder saved

Rank 0 alone saves, after each epoch; `--resume` goes on from there. `train_serial_keras.py` is
the same program without Horovod, `train_keras3.py` that for Keras 3.
"""

import argparse
import functools
from pathlib import Path

from distlab import cluster_spec, data, models, saved_states  # first: selects tf-keras

import horovod.tensorflow.keras as hvd
import numpy as np
import tensorflow as tf
from horovod.tensorflow import broadcast_object, broadcast_variables
from tensorflow import keras


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Train with Horovod and Keras's fit.")
    parser.add_argument("--dataset", choices=data.NAMES, default="digits")
    parser.add_argument("--images", type=int, default=1280, help="how many images to train on")
    parser.add_argument("--batch", type=int, default=32, help="images of one rank in a step")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--learning-rate", type=float, default=0.02, help="for one rank")
    parser.add_argument("--seed", type=int, default=9)
    parser.add_argument("--folder", type=Path, help="for epochs; else none is saved")
    parser.add_argument("--resume", action="store_true", help="go on from the newest one")
    cluster_spec.check_mpi_of_srun()
    return parser.parse_args(arguments)


def pin_device() -> None:
    """Let this process see its own GPU only, and take memory only as it needs it."""
    if gpus := tf.config.list_physical_devices("GPU"):
        own = gpus[hvd.local_rank() % len(gpus)]  # with --gpus-per-task=1 a rank sees one only
        tf.config.set_visible_devices(own, "GPU")
        tf.config.experimental.set_memory_growth(own, True)


def batches(options: argparse.Namespace, epoch: int) -> tf.data.Dataset:
    """The batches of an epoch; their order is a function of seed and epoch."""
    images, labels = data.load(options.dataset).train
    order = np.random.default_rng([options.seed, epoch]).permutation(options.images)
    samples = tf.data.Dataset.from_tensor_slices((images[order], labels[order]))
    samples = samples.shard(hvd.size(), hvd.rank()).batch(options.batch, drop_remainder=True)
    return samples.repeat().take(steps_per_epoch(options))


def steps_per_epoch(options: argparse.Namespace) -> int:
    """Steps after which an epoch is over."""
    return options.images // (options.batch * hvd.size())


def make_optimizer(options: argparse.Namespace) -> keras.optimizers.Optimizer:
    """SGD with momentum."""
    optimizer = keras.optimizers.SGD(options.learning_rate * hvd.size(), momentum=0.9)
    return hvd.DistributedOptimizer(optimizer)


def begin(options: argparse.Namespace, model: keras.Model) -> int:
    """Take the model from the newest epoch, if that is asked for; how many epochs are done."""
    epochs_done = 0
    if options.resume and hvd.rank() == 0:
        newest = max(options.folder.glob("*.weights.h5"))
        model.load_weights(newest)
        epochs_done = int(newest.name.split(".")[0])
    # Now, not by BroadcastGlobalVariablesCallback, which comes after the first step.
    broadcast_variables([*model.variables, *model.optimizer.variables], root_rank=0)
    return broadcast_object(epochs_done, root_rank=0)


def callbacks(options: argparse.Namespace) -> list[keras.callbacks.Callback]:
    """What `fit` calls after each epoch."""
    called = [hvd.callbacks.MetricAverageCallback()]
    if options.folder and hvd.rank() == 0:
        file = str(options.folder / "{epoch:04d}.weights.h5")
        called.append(keras.callbacks.ModelCheckpoint(file, save_weights_only=True))
    return called


def make_model() -> keras.Model:
    """The lecture's network without dropout."""
    return models.mlp(dropout=0.0)


def train(options: argparse.Namespace) -> dict:
    """Train; the history of this rank, and the weights."""
    if options.folder and not options.resume and hvd.rank() == 0:
        saved_states.check_unused(options.folder)
    # As without any seed, each rank draws its own first weights.
    keras.utils.set_random_seed(options.seed + hvd.rank())
    model = make_model()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(make_optimizer(options), loss, metrics=["accuracy"])
    model.optimizer.build(model.trainable_variables)
    first = begin(options, model)
    if first >= options.epochs:
        raise SystemExit("All epochs are done; --epochs can ask for more.")
    first_weights = model.get_weights()
    of_epochs = [batches(options, epoch) for epoch in range(first, options.epochs)]
    samples = functools.reduce(tf.data.Dataset.concatenate, of_epochs)
    how = {"initial_epoch": first, "epochs": options.epochs, "callbacks": callbacks(options)}
    run = model.fit(samples, steps_per_epoch=steps_per_epoch(options), verbose=0, **how)
    weights = {"first_weights": first_weights, "weights": model.get_weights()}
    return {"history": run.history, **weights}


def main() -> None:
    """Train; rank 0 says how it went."""
    options = parse()
    hvd.init()
    pin_device()
    history = train(options)["history"]
    if hvd.rank() == 0:
        print(f"{hvd.size()} ranks, loss of the last epoch {history['loss'][-1]:.4f}")


if __name__ == "__main__":
    main()
