"""Train the network of this folder with Horovod: the same program, whatever starts its ranks.

In a batch script or after `salloc --nodes=3 --ntasks-per-node=1`, and on a laptop (the first
four are scripts in slurm/: horovod_mpirun, horovod_pmix, horovod_gloo and horovod_ssh):

    mpirun python train_horovod.py
    srun --mpi=pmix python train_horovod.py
    srun python train_horovod.py --gloo-from-slurm
    horovodrun --gloo -np 3 -H node1:1,node2:1,node3:1 python train_horovod.py
    horovodrun --gloo -np 2 python train_horovod.py
"""

import argparse
from collections.abc import Callable

from distlab import cluster_spec  # before TensorFlow: distlab selects tf-keras

import horovod.tensorflow as hvd
import network
import tensorflow as tf

mean_loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def parser(description: str) -> argparse.ArgumentParser:
    """The options of all programs, and one for ranks that srun has started without MPI."""
    arguments = network.parser(description)
    arguments.add_argument("--gloo-from-slurm", action="store_true", help="by srun, no MPI")
    return arguments


def begin(options: argparse.Namespace) -> None:
    """Meet the other ranks, and let this one see its own GPU only."""
    if options.gloo_from_slurm:
        cluster_spec.gloo_from_slurm()
    else:
        cluster_spec.check_mpi_of_srun(or_gloo=True)
    hvd.init()
    if gpus := tf.config.list_physical_devices("GPU"):
        own = gpus[hvd.local_rank() % len(gpus)]  # with --gpus-per-task=1 a rank sees one only
        tf.config.set_visible_devices(own, "GPU")
        tf.config.experimental.set_memory_growth(own, True)


def make_model(units: int) -> tf.keras.Model:
    """The network, with the first weights."""
    layers = [tf.keras.layers.Dense(units, activation="relu"), tf.keras.layers.Dense(10)]
    model = tf.keras.Sequential([tf.keras.layers.Input((network.INPUTS,)), *layers])
    model.set_weights(network.first_weights(units))
    return model


def make_step(model: tf.keras.Model, optimizer: tf.keras.optimizers.Optimizer) -> Callable:
    """A step of all ranks; it gives the loss of this rank's images."""

    @tf.function(autograph=False)  # nothing to translate
    def step(images: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = mean_loss(labels, model(images, training=True))
        tape = hvd.DistributedGradientTape(tape)
        gradients = tape.gradient(loss, model.trainable_variables)  # the means over all ranks
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    return step


def report(batches: network.Batches, loss: tf.Tensor, model: tf.keras.Model) -> None:
    """With the mean of all ranks' last losses."""
    mean = float(hvd.allreduce(loss, name="loss"))
    network.report(batches, "Horovod", mean, model.get_weights())


if __name__ == "__main__":
    options = parser("Train with Horovod.").parse_args()
    begin(options)
    model = make_model(options.units)
    hvd.broadcast_variables(model.variables, root_rank=0)
    optimizer = tf.keras.optimizers.SGD(options.learning_rate, momentum=network.MOMENTUM)
    step = make_step(model, optimizer)
    batches = network.Batches(options, hvd.rank(), hvd.size())
    for images, labels in batches:
        loss = step(images, labels)
    report(batches, loss, model)
