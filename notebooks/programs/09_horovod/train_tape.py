"""Train the lecture's network with Horovod in a custom loop: one process per device.

On a laptop, two ranks over Gloo or over MPI; on two hosts with four slots each; under Slurm in
a batch script or after `salloc --nodes=2 --ntasks-per-node=4`:

    horovodrun -np 2 --gloo python train_tape.py --folder saved
    mpirun -np 2 -bind-to none python train_tape.py --folder saved
    horovodrun -np 8 -H host0:4,host1:4 python train_tape.py --folder saved
    srun --mpi=pmix python train_tape.py --folder saved

Rank 0 alone writes a checkpoint after each epoch; `--resume` goes on from the newest one, on
as many ranks as you like. `train_serial.py` is the same program without Horovod.
"""

import argparse
from pathlib import Path

from distlab import cluster_spec, data, models, saved_states  # first: selects tf-keras

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

mean_loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Train with Horovod and a gradient tape.")
    parser.add_argument("--dataset", choices=data.NAMES, default="digits")
    parser.add_argument("--images", type=int, default=1280, help="how many images to train on")
    parser.add_argument("--batch", type=int, default=32, help="images of one rank in a step")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--learning-rate", type=float, default=0.02, help="for one rank")
    parser.add_argument("--seed", type=int, default=9)
    parser.add_argument("--folder", type=Path, help="for checkpoints; else none is saved")
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
    """(Numbers, images, labels) of an epoch in batches, in an order by seed and epoch."""
    images, labels = data.load(options.dataset).train
    order = np.random.default_rng([options.seed, epoch]).permutation(options.images)
    samples = tf.data.Dataset.from_tensor_slices((order, images[order], labels[order]))
    samples = samples.shard(hvd.size(), hvd.rank())
    return samples.batch(options.batch, drop_remainder=True).repeat()


def steps_per_epoch(options: argparse.Namespace) -> int:
    """Steps after which an epoch is over."""
    return options.images // (options.batch * hvd.size())


def make_optimizer(options: argparse.Namespace) -> tf.keras.optimizers.Optimizer:
    """SGD with momentum."""
    return tf.keras.optimizers.SGD(options.learning_rate * hvd.size(), momentum=0.9)


def begin(options: argparse.Namespace, state: tf.train.Checkpoint) -> None:
    """Take the state from the newest checkpoint, if that is asked for."""
    if options.resume and hvd.rank() == 0:
        newest = tf.train.latest_checkpoint(options.folder)
        state.restore(newest).assert_existing_objects_matched()
    everything = [*state.model.variables, *state.optimizer.variables, state.epochs_done]
    hvd.broadcast_variables(everything, root_rank=0)


@tf.function(autograph=False)  # there is no loop or condition to translate
def step(state: tf.train.Checkpoint, images: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    """Change the weights once; the loss before."""
    with tf.GradientTape() as tape:
        loss = mean_loss(labels, state.model(images, training=True))
    tape = hvd.DistributedGradientTape(tape)
    gradients = tape.gradient(loss, state.model.trainable_variables)
    pairs = zip(gradients, state.model.trainable_variables, strict=True)
    state.optimizer.apply_gradients(pairs)
    return loss


def save(options: argparse.Namespace, state: tf.train.Checkpoint) -> None:
    """Write a checkpoint, if there is a folder for it."""
    if options.folder and hvd.rank() == 0:
        state.save(str(options.folder / "checkpoint"))


def train(options: argparse.Namespace) -> dict:
    """Train; this rank's losses and samples of each step, and the weights."""
    if options.folder and not options.resume and hvd.rank() == 0:
        saved_states.check_unused(options.folder)
    # As without any seed, each rank draws its own first weights.
    tf.keras.utils.set_random_seed(options.seed + hvd.rank())
    model, optimizer = models.mlp(dropout=0.0), make_optimizer(options)
    optimizer.build(model.trainable_variables)
    epochs_done = tf.Variable(0, dtype=tf.int64)
    state = tf.train.Checkpoint(model=model, optimizer=optimizer, epochs_done=epochs_done)
    begin(options, state)
    if int(state.epochs_done) >= options.epochs:
        raise SystemExit("All epochs are done; --epochs can ask for more.")
    first_weights = model.get_weights()
    losses, seen = [], []
    for epoch in range(int(state.epochs_done), options.epochs):
        for numbers, images, labels in batches(options, epoch).take(steps_per_epoch(options)):
            losses.append(float(step(state, images, labels)))
            seen.append(numbers.numpy().tolist())
        state.epochs_done.assign(epoch + 1)
        save(options, state)
    weights = {"first_weights": first_weights, "weights": model.get_weights()}
    return {"losses": losses, "seen": seen, **weights}


def main() -> None:
    """Train; rank 0 says how it went."""
    options = parse()
    hvd.init()
    pin_device()
    losses = train(options)["losses"]
    last = float(hvd.allreduce(tf.constant(losses[-1])))
    if hvd.rank() == 0:
        print(f"{hvd.size()} ranks, {len(losses)} steps, last loss {last:.4f}")


if __name__ == "__main__":
    main()
