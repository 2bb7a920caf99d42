"""Train with Horovod: one process per device, each with its own batch.

On a laptop, two ranks over Gloo or over MPI; on two hosts with four slots each; under Slurm in
a batch script or after `salloc --nodes=2 --ntasks-per-node=4`:

    horovodrun -np 2 --gloo python train_horovod.py start.npz --folder saved
    mpirun -np 2 python train_horovod.py start.npz --folder saved
    horovodrun -np 8 -H host0:4,host1:4 python train_horovod.py start.npz
    srun --mpi=pmix python train_horovod.py start.npz --result result.json

`start.py` writes start.npz. Rank 0 alone writes a checkpoint after each epoch; `--resume` goes
on from it. The numbers in comments are the eight steps of notebook 09.
"""

import argparse

from distlab import models  # before TensorFlow: it selects tf-keras

import horovod.tensorflow as hvd
import layouts
import numpy as np
import tensorflow as tf

mean_loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def pin_device() -> None:
    """Meet the other ranks, and let this one see one GPU only."""
    # Step 1, initialise.
    hvd.init()
    # Step 2, pin the device: the GPU of this process's place on the host; hide the others.
    gpus = tf.config.list_physical_devices("GPU")
    if gpus:
        own = gpus[hvd.local_rank() % len(gpus)]
        tf.config.set_visible_devices(own, "GPU")
        tf.config.experimental.set_memory_growth(own, True)  # NCCL needs memory, too


def train(options: argparse.Namespace) -> dict:
    """Train; the losses of this rank's batches, the weights, and the bytes that it holds."""
    tf.keras.utils.set_random_seed(1 + hvd.rank())  # first weights differ, as without a seed
    model = models.cnn(filters=16)
    # Step 3, scale the learning rate.
    optimizer = tf.keras.optimizers.SGD(options.learning_rate * hvd.size(), momentum=0.9)
    optimizer.build(model.trainable_variables)
    epochs_done = tf.Variable(0, dtype=tf.int64)
    checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer, epochs_done=epochs_done)
    if hvd.rank() == 0:
        model.set_weights(layouts.read(options.start))
        if options.resume:
            newest = tf.train.latest_checkpoint(options.folder)
            checkpoint.restore(newest).assert_existing_objects_matched()
    # Step 5, broadcast: rank 0's variables go to all.
    hvd.broadcast_variables([*model.variables, *optimizer.variables, epochs_done], root_rank=0)
    with np.load(options.start) as arrays:
        images, labels = arrays["images"], arrays["labels"]
    # Step 7, shard the data: rank r of N takes every N-th image from the r-th on.
    samples = tf.data.Dataset.from_tensor_slices((images, labels))
    samples = samples.shard(hvd.size(), hvd.rank())
    # Step 8, steps per epoch: an N-th of what one process would need.
    steps = len(images) // (options.batch * hvd.size())
    batches = samples.batch(options.batch, drop_remainder=True).take(steps)

    @tf.function(autograph=False)
    def step(images: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = mean_loss(labels, model(images, training=True))
        # Step 4, average the gradients: the wrapped tape does it when it is asked for them.
        gradients = hvd.DistributedGradientTape(tape).gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    losses = []
    for epoch in range(int(epochs_done), options.epochs):
        losses += [float(step(*batch)) for batch in batches]
        epochs_done.assign(epoch + 1)
        # Step 6, checkpoint on rank 0.
        if options.folder and hvd.rank() == 0:
            checkpoint.save(str(options.folder / "checkpoint"))
    held = {"parameters": sum(weight.nbytes for weight in model.get_weights())}
    slots = [slot.numpy() for slot in optimizer.variables if slot.shape.rank]
    held["optimizer"] = sum(slot.nbytes for slot in slots)
    return {"losses": losses, "weights": model.get_weights(), "held": held}


def main() -> None:
    """Train; rank 0 writes the mean losses, what each rank holds, and the weights."""
    options = layouts.parser_of_ranks("Train with Horovod.").parse_args()
    pin_device()
    result = train(options)
    weights = result.pop("weights")
    of_ranks = hvd.allgather_object(result)
    if hvd.rank() == 0:
        losses = np.mean([rank["losses"] for rank in of_ranks], axis=0).tolist()
        found = {
            "ranks": hvd.size(),
            "losses": losses,
            "held": [each["held"] for each in of_ranks],
        }
        layouts.report(options, f"{hvd.size()} ranks,", found, weights)


if __name__ == "__main__":
    main()
