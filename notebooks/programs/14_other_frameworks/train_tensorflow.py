"""Train with TensorFlow: on one device, or on workers with MultiWorkerMirroredStrategy.

On a laptop, in one process, and on two workers (the launcher chooses the ports and sets
TF_CONFIG); on several hosts, and in each task of Slurm, with a TF_CONFIG of its own:

    python train_tensorflow.py start.npz --weights serial.npz --result result.json
    distlab launch --workers 2 train_tensorflow.py -- start.npz --folder saved
    srun --ntasks=2 bash -c 'TF_CONFIG=... python train_tensorflow.py start.npz'

`start.py` writes start.npz. Every worker takes part in writing a checkpoint after each epoch,
and the chief's stays; `--resume` goes on from it. The numbers in comments are the eight steps
of notebook 09.
"""

import argparse
import os
import tempfile
from pathlib import Path

from distlab import cluster_spec, models  # before TensorFlow: it selects tf-keras

import layouts
import numpy as np
import tensorflow as tf

GLOBAL_BATCH, RATE = 48, 0.02


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = layouts.parser("Train with TensorFlow.")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="for checkpoints; else none is saved")
    parser.add_argument("--resume", action="store_true", help="go on from the newest one")
    return parser.parse_args(arguments)


def make_strategy() -> tf.distribute.Strategy:
    """The strategy of all workers, or of this process alone."""
    # Step 1, initialise: the strategy reads TF_CONFIG and meets the other workers. It must be
    # TensorFlow's first act. Step 2, pin the device: the strategy drives all GPUs that this
    # process sees; nothing is to be done.
    if "TF_CONFIG" not in os.environ:
        return tf.distribute.get_strategy()
    with cluster_spec.interruptible():
        return tf.distribute.MultiWorkerMirroredStrategy()


def train(options: argparse.Namespace, strategy: tf.distribute.Strategy) -> dict:
    """Train; the losses of the global batches and the weights."""
    with strategy.scope():
        model = models.cnn(filters=16)
        # Step 3, scale the learning rate: not here, since it is that of the global batch.
        optimizer = tf.keras.optimizers.SGD(RATE, momentum=0.9)
        optimizer.build(model.trainable_variables)
    # Step 5, broadcast: variables made in the scope get the chief's value. These are set in
    # every worker alike.
    model.set_weights(layouts.read(options.start))
    epochs_done = tf.Variable(0, dtype=tf.int64)
    checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer, epochs_done=epochs_done)
    if options.resume:
        newest = tf.train.latest_checkpoint(options.folder)
        checkpoint.restore(newest).assert_existing_objects_matched()
    with np.load(options.start) as arrays:
        images, labels = arrays["images"], arrays["labels"]

    def own_batches(context: tf.distribute.InputContext) -> tf.data.Dataset:
        # Step 7, shard the data: worker r of N takes every N-th image from the r-th on.
        samples = tf.data.Dataset.from_tensor_slices((images, labels))
        samples = samples.shard(context.num_input_pipelines, context.input_pipeline_id)
        batch = context.get_per_replica_batch_size(GLOBAL_BATCH)
        return samples.batch(batch, drop_remainder=True)

    def replica_step(images: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            logits = model(images, training=True)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
            loss = tf.nn.compute_average_loss(losses, global_batch_size=GLOBAL_BATCH)
        gradients = tape.gradient(loss, model.trainable_variables)
        # Step 4, average the gradients: the optimizer sums those of all workers, whose losses
        # were divided by the global batch.
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    @tf.function
    def step(batch: tuple[tf.Tensor, tf.Tensor]) -> tf.Tensor:
        return strategy.reduce("SUM", strategy.run(replica_step, args=batch), axis=None)

    batches = strategy.distribute_datasets_from_function(own_batches)
    # Step 8, steps per epoch: of global batches.
    steps = len(images) // GLOBAL_BATCH
    losses, is_chief = [], is_chief_of(strategy)
    for epoch in range(int(epochs_done), options.epochs):
        losses += [float(step(batch)) for _, batch in zip(range(steps), batches, strict=False)]
        epochs_done.assign(epoch + 1)
        # Step 6, checkpoint: every worker must call `save`, since reading the variables is a
        # meeting; one file stays.
        if options.folder:
            with tempfile.TemporaryDirectory() as scratch:
                place = options.folder if is_chief else Path(scratch)
                checkpoint.save(str(place / "checkpoint"))
    weights = model.get_weights()
    slots = [slot.numpy() for slot in optimizer.variables if slot.shape.rank]
    held = {"parameters": sum(weight.nbytes for weight in weights)}
    held["optimizer"] = sum(slot.nbytes for slot in slots)
    return {
        "losses": losses,
        "weights": weights,
        "held": [held] * strategy.num_replicas_in_sync,
    }


def is_chief_of(strategy: tf.distribute.Strategy) -> bool:
    """Whether this process is worker 0, or alone."""
    return not strategy.cluster_resolver or strategy.cluster_resolver.task_id == 0


def main() -> None:
    """Train, and let the chief report."""
    options, strategy = parse(), make_strategy()
    result = train(options, strategy)
    if is_chief_of(strategy):
        ranks, weights = strategy.num_replicas_in_sync, result.pop("weights")
        layouts.report(options, f"{ranks} workers,", {"ranks": ranks, **result}, weights)


if __name__ == "__main__":
    main()
