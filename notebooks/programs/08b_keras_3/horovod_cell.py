"""Horovod's cells of the table "strategy × training API": train some steps of SGD and write what came out.

On a laptop, two ranks, over Gloo or over MPI:

    horovodrun -np 2 --gloo python horovod_cell.py --api fit --result cell.json
    mpirun -np 2 python horovod_cell.py --api custom --result cell.json

With Keras 3 both end with an error; with the changes that it needs they train:

    TF_USE_LEGACY_KERAS=0 horovodrun -np 2 --gloo python horovod_cell.py --api fit
    TF_USE_LEGACY_KERAS=0 horovodrun -np 2 --gloo python horovod_cell.py --api fit --changed

Under Slurm, in a batch script or after `salloc --nodes=2 --ntasks-per-node=1`:

    srun --mpi=pmix python horovod_cell.py --api fit --result cell.json

The model, the data and the result are those of `support_cell.py`, next to it. Rank 0 alone writes the result.
"""

import argparse
from pathlib import Path

import distlab  # noqa: F401  # before TensorFlow: selects tf-keras unless TF_USE_LEGACY_KERAS is 0

import horovod.tensorflow as hvd
import horovod.tensorflow.keras as hvd_keras
import tensorflow as tf
from support_cell import GLOBAL_BATCH_SIZE, LEARNING_RATE, Trained, make_loss, make_model, samples, write_result


def share_of_batches() -> tf.data.Dataset:
    """This rank's share of each global batch."""
    share = tf.data.Dataset.from_tensor_slices(samples()).shard(hvd.size(), hvd.rank())
    return share.batch(GLOBAL_BATCH_SIZE // hvd.size()).repeat()


def as_documented(api: str, steps: int) -> Trained:
    """Train as the manual says: DistributedOptimizer for `fit`, DistributedGradientTape for a loop."""
    model, optimizer, mean_loss = make_model(), tf.keras.optimizers.SGD(LEARNING_RATE), make_loss()
    if api == "fit":
        optimizer = hvd_keras.DistributedOptimizer(optimizer)
        model.compile(optimizer, mean_loss)
        broadcast = hvd_keras.callbacks.BroadcastGlobalVariablesCallback(0)
        model.fit(share_of_batches(), steps_per_epoch=steps, verbose=0, callbacks=[broadcast])
        return model, optimizer
    hvd.broadcast_variables(model.variables, root_rank=0)
    for images, labels in share_of_batches().take(steps):
        with hvd.DistributedGradientTape(tf.GradientTape()) as tape:
            loss = mean_loss(labels, model(images, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return model, optimizer


def changed(api: str, steps: int) -> Trained:
    """The same for Keras 3: its optimizer averages by itself, and Horovod gets the TensorFlow variables in Keras's."""

    class AveragingSGD(tf.keras.optimizers.SGD):
        def apply(self, gradients: list[tf.Tensor], variables: list | None = None) -> None:
            super().apply([hvd.allreduce(gradient) for gradient in gradients], variables)

    model, optimizer, mean_loss = make_model(), AveragingSGD(LEARNING_RATE), make_loss()
    optimizer.build(model.trainable_variables)
    hvd.broadcast_variables([variable.value for variable in [*model.variables, *optimizer.variables]], root_rank=0)
    if api == "fit":
        model.compile(optimizer, mean_loss, jit_compile=False)  # XLA, Keras's choice on a GPU, knows no Horovod
        model.fit(share_of_batches(), steps_per_epoch=steps, verbose=0)
        return model, optimizer
    for images, labels in share_of_batches().take(steps):
        with tf.GradientTape() as tape:
            loss = mean_loss(labels, model(images, training=True))
        optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
    return model, optimizer


def main() -> None:
    """Train as asked; rank 0 writes the result."""
    parser = argparse.ArgumentParser(description="Train with Horovod, by one API.")
    parser.add_argument("--api", choices=["fit", "custom"], required=True)
    parser.add_argument("--changed", action="store_true", help="in the way that works with Keras 3")
    parser.add_argument("--steps", type=int, default=20, help="updates of the weights (default: 20)")
    parser.add_argument("--result", type=Path, help="JSON file that rank 0 writes")
    options = parser.parse_args()
    hvd.init()
    model, optimizer = (changed if options.changed else as_documented)(options.api, options.steps)
    if hvd.rank() == 0:
        write_result(model, optimizer, hvd.size(), options.result)


if __name__ == "__main__":
    main()
