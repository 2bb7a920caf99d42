"""Train the network of this folder with Horovod: the same program, whatever starts its ranks.

In a batch script or after `salloc --nodes=3 --ntasks-per-node=1` (each line is a script in slurm/):

    mpirun python train_horovod.py                                      horovod_mpirun.sbatch
    srun --mpi=pmix python train_horovod.py                             horovod_pmix.sbatch
    srun python train_horovod.py --gloo-from-slurm                      horovod_gloo.sbatch
    horovodrun --gloo -np 3 -H node1:1,node2:1,node3:1 python train_horovod.py    horovod_ssh.sbatch

On a laptop: `horovodrun --gloo -np 2 python train_horovod.py`. Started plainly it is one rank.
"""

from distlab import cluster_spec  # before TensorFlow: distlab selects tf-keras

import horovod.tensorflow as hvd
import network
import tensorflow as tf

mean_loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def main() -> None:
    """Train and report."""
    arguments = network.parser("Train with Horovod.")
    arguments.add_argument("--gloo-from-slurm", action="store_true", help="srun has started the ranks, without MPI")
    options = arguments.parse_args()
    if options.gloo_from_slurm:
        cluster_spec.gloo_from_slurm()
    else:
        cluster_spec.check_mpi_of_srun(or_gloo=True)
    hvd.init()
    if gpus := tf.config.list_physical_devices("GPU"):
        own = gpus[hvd.local_rank() % len(gpus)]  # with --gpus-per-task=1 a rank sees one only
        tf.config.set_visible_devices(own, "GPU")
        tf.config.experimental.set_memory_growth(own, True)
    layers = [tf.keras.layers.Dense(options.units, activation="relu"), tf.keras.layers.Dense(10)]
    model = tf.keras.Sequential([tf.keras.layers.Input((network.INPUTS,)), *layers])
    if hvd.rank() == 0:
        model.set_weights(network.first_weights(options.units))
    hvd.broadcast_variables(model.variables, root_rank=0)
    optimizer = tf.keras.optimizers.SGD(options.learning_rate, momentum=network.MOMENTUM)

    @tf.function(autograph=False)  # nothing to translate
    def step(images: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = mean_loss(labels, model(images, training=True))
        tape = hvd.DistributedGradientTape(tape)
        gradients = tape.gradient(loss, model.trainable_variables)  # the means over all ranks
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    batches = network.Batches(options, hvd.rank(), hvd.size())
    for images, labels in batches:
        loss = step(images, labels)
    network.report(batches, "Horovod", float(hvd.allreduce(loss, name="loss")), model.get_weights())


if __name__ == "__main__":
    main()
