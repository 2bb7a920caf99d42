"""Train the network of this folder with TensorFlow: on one device, or on workers with MultiWorkerMirroredStrategy.

On a laptop, in one process, and on two workers (the launcher chooses the ports and sets TF_CONFIG):

    python train_tensorflow.py start.npz --weights serial.npz --result result.json
    distlab launch --workers 2 train_tensorflow.py -- start.npz --folder saved --result result.json

On several hosts each worker gets a TF_CONFIG of its own, and under Slurm each task does:

    TF_CONFIG='{"cluster": {"worker": ["HOST0:PORT", "HOST1:PORT"]}, "task": {"type": "worker", "index": 0}}' \
        python train_tensorflow.py start.npz
    srun --ntasks=2 bash -c 'TF_CONFIG=... python train_tensorflow.py start.npz'

`start.py` writes start.npz. Every worker takes part in writing a checkpoint after each epoch, and the chief's stays;
`--resume` goes on from it. The numbers in comments are the eight steps of notebook 09.
"""

import argparse
import json
import os
import tempfile
from pathlib import Path

from distlab import cluster_spec, models  # before TensorFlow: it selects tf-keras

import layouts
import numpy as np
import tensorflow as tf


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Train with TensorFlow, in one process or on several workers.")
    parser.add_argument("start", type=Path, help="the file that start.py wrote")
    parser.add_argument("--global-batch", type=int, default=48, help="images in a step of all workers")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--learning-rate", type=float, default=0.02, help="for the global batch")
    parser.add_argument("--folder", type=Path, help="for checkpoints; without it nothing is saved")
    parser.add_argument("--resume", action="store_true", help="go on from the newest checkpoint in --folder")
    parser.add_argument("--weights", type=Path, help=".npz file for the trained weights")
    parser.add_argument("--result", type=Path, help="JSON file that the chief writes")
    options = parser.parse_args(arguments)
    layouts.check_folder(options, "checkpoint-*.index")
    return options


def make_strategy() -> tf.distribute.Strategy:
    """The strategy of all workers, or of this process alone."""
    # Step 1, initialise: the strategy reads TF_CONFIG and meets the other workers. It must be TensorFlow's first act.
    # Step 2, pin the device: the strategy drives all GPUs that this process sees; nothing is to be done.
    with cluster_spec.interruptible():
        return (
            tf.distribute.MultiWorkerMirroredStrategy() if "TF_CONFIG" in os.environ else tf.distribute.get_strategy()
        )


def train(options: argparse.Namespace, strategy: tf.distribute.Strategy) -> dict:
    """Train; the losses of the global batches and the weights."""
    index = strategy.cluster_resolver.task_id if strategy.cluster_resolver else 0
    with strategy.scope():
        model = models.cnn(filters=16)
        # Step 3, scale the learning rate: not here, since the program names the global batch.
        optimizer = tf.keras.optimizers.SGD(options.learning_rate, momentum=0.9)
        optimizer.build(model.trainable_variables)
    # Step 5, broadcast: variables made in the scope get the chief's value. These are set in every worker alike.
    model.set_weights(layouts.read(options.start))
    epochs_done = tf.Variable(0, dtype=tf.int64)
    checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer, epochs_done=epochs_done)
    if options.resume:
        checkpoint.restore(tf.train.latest_checkpoint(options.folder)).assert_existing_objects_matched()
    with np.load(options.start) as arrays:
        images, labels = arrays["images"], arrays["labels"]

    def own_batches(context: tf.distribute.InputContext) -> tf.data.Dataset:
        # Step 7, shard the data: worker r of N takes every N-th image from the r-th on.
        samples = tf.data.Dataset.from_tensor_slices((images, labels))
        samples = samples.shard(context.num_input_pipelines, context.input_pipeline_id)
        return samples.batch(context.get_per_replica_batch_size(options.global_batch), drop_remainder=True)

    @tf.function
    def step(images: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        def replica_step(images: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
            with tf.GradientTape() as tape:
                losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, model(images, training=True))
                loss = tf.nn.compute_average_loss(losses, global_batch_size=options.global_batch)
            gradients = tape.gradient(loss, model.trainable_variables)
            # Step 4, average the gradients: the optimizer sums those of all workers, whose losses were divided by
            # the global batch.
            optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
            return loss

        return strategy.reduce("SUM", strategy.run(replica_step, args=(images, labels)), axis=None)

    batches = strategy.distribute_datasets_from_function(own_batches)
    # Step 8, steps per epoch: of global batches.
    steps = len(images) // options.global_batch
    losses = []
    for epoch in range(int(epochs_done), options.epochs):
        losses += [float(step(*batch)) for _, batch in zip(range(steps), batches, strict=False)]
        epochs_done.assign(epoch + 1)
        # Step 6, checkpoint: every worker must call `save`, since reading the variables is a meeting; one file stays.
        if options.folder:
            with tempfile.TemporaryDirectory() as scratch:
                checkpoint.save(str((options.folder if index == 0 else Path(scratch)) / "checkpoint"))
    weights = model.get_weights()
    held = {"parameters": sum(weight.nbytes for weight in weights)}
    held["optimizer"] = sum(slot.numpy().nbytes for slot in optimizer.variables if slot.shape.rank)
    ranks = strategy.num_replicas_in_sync
    return {"is_chief": index == 0, "ranks": ranks, "losses": losses, "weights": weights, "held": [held] * ranks}


def report(options: argparse.Namespace, result: dict) -> None:
    """Say how it went; the chief writes the losses and the weights."""
    if result.pop("is_chief"):
        weights, losses = result.pop("weights"), result["losses"]
        print(f"{result['ranks']} workers, {layouts.outcome(losses)}", flush=True)
        if options.weights:
            layouts.write(options.weights, weights)
        if options.result and losses:
            options.result.write_text(json.dumps(result | {"steps": len(losses)}) + "\n")


def main() -> None:
    """Train and report."""
    options = parse()
    report(options, train(options, make_strategy()))


if __name__ == "__main__":
    main()
