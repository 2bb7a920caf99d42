"""Horovod's cells of the table "strategy × training API": train by SGD, write what came out.

On a laptop, two ranks over Gloo or over MPI; under Slurm in a batch script; and with Keras 3,
which ends with an error without the changes that it needs:

    horovodrun -np 2 --gloo python horovod_cell.py --api fit --result cell.json
    mpirun -np 2 python horovod_cell.py --api custom --result cell.json
    srun --mpi=pmix python horovod_cell.py --api fit --result cell.json
    TF_USE_LEGACY_KERAS=0 horovodrun -np 2 --gloo python horovod_cell.py --api fit --changed

Model, data and result are those of `support_cell.py`, next to it.
"""

import argparse
from pathlib import Path

import distlab  # noqa: F401  before TensorFlow: selects tf-keras by TF_USE_LEGACY_KERAS

import horovod.tensorflow as hvd
import horovod.tensorflow.keras as hvd_keras
import support_cell
import tensorflow as tf
from support_cell import LEARNING_RATE, Trained, make_loss, make_model


def share_of_batches() -> tf.data.Dataset:
    """This rank's share of each global batch."""
    share = tf.data.Dataset.from_tensor_slices(support_cell.samples())
    batch = support_cell.GLOBAL_BATCH_SIZE // hvd.size()
    return share.shard(hvd.size(), hvd.rank()).batch(batch).repeat()


def as_documented(api: str, steps: int) -> Trained:
    """As in the manual: DistributedOptimizer for `fit`, DistributedGradientTape in a loop."""
    model, optimizer = make_model(), tf.keras.optimizers.SGD(LEARNING_RATE)
    if api == "fit":
        optimizer = hvd_keras.DistributedOptimizer(optimizer)
        model.compile(optimizer, make_loss())
        broadcast = hvd_keras.callbacks.BroadcastGlobalVariablesCallback(0)
        model.fit(share_of_batches(), steps_per_epoch=steps, verbose=0, callbacks=[broadcast])
        return model, optimizer
    hvd.broadcast_variables(model.variables, root_rank=0)
    for images, labels in share_of_batches().take(steps):
        with hvd.DistributedGradientTape(tf.GradientTape()) as tape:
            loss = make_loss()(labels, model(images, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return model, optimizer


def changed(api: str, steps: int) -> Trained:
    """For Keras 3: its optimizer averages by itself; Horovod gets TensorFlow's variables."""

    class AveragingSGD(tf.keras.optimizers.SGD):
        def apply(self, gradients: list[tf.Tensor], variables: list | None = None) -> None:
            super().apply([hvd.allreduce(gradient) for gradient in gradients], variables)

    model, optimizer = make_model(), AveragingSGD(LEARNING_RATE)
    weights = model.trainable_variables
    optimizer.build(weights)
    variables = [*model.variables, *optimizer.variables]
    hvd.broadcast_variables([variable.value for variable in variables], root_rank=0)
    if api == "fit":
        # XLA, Keras's choice on a GPU, knows no Horovod.
        model.compile(optimizer, make_loss(), jit_compile=False)
        model.fit(share_of_batches(), steps_per_epoch=steps, verbose=0)
        return model, optimizer
    for images, labels in share_of_batches().take(steps):
        with tf.GradientTape() as tape:
            loss = make_loss()(labels, model(images, training=True))
        optimizer.apply(tape.gradient(loss, weights), weights)
    return model, optimizer


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Train with Horovod, by one API.")
    parser.add_argument("--api", choices=["fit", "custom"], required=True)
    parser.add_argument("--changed", action="store_true", help="as it works with Keras 3")
    parser.add_argument("--steps", type=int, default=20, help="updates of the weights")
    parser.add_argument("--result", type=Path, help="JSON file that rank 0 writes")
    options = parser.parse_args()
    hvd.init()
    train = changed if options.changed else as_documented
    trained = train(options.api, options.steps)
    if hvd.rank() == 0:
        support_cell.write_result(trained, hvd.size(), options.result)
