"""Train the network of this folder so that a job may end and begin again, and no step is lost or done twice.

Under Slurm the batch script is slurm/requeue.sbatch; each attempt starts the program in the same way:

    srun --mpi=pmix --wait=60 python train_resumable.py --checkpoints saved --steps 20000

Before the time limit Slurm sends SIGUSR1 to the ranks, to some earlier than to others. After each step the ranks add up
how many have received it. So all see it after the same step: rank 0 saves that step, and all end with status 85, "start
me again". The next attempt goes on from there. On a laptop: `horovodrun --gloo -np 2 python train_resumable.py …`.
"""

import signal
import sys
from pathlib import Path

# ruff: noqa: E402 - a notice may come while modules are being imported, and would end the program
NOTICES = (signal.SIGUSR1, signal.SIGTERM)
"""What says that the time is nearly over: Slurm sends what the script asks for, PBS sends SIGTERM."""
received: list[int] = []
# A handler may run in the middle of anything, so it only remembers.
for notice in NOTICES:
    signal.signal(notice, lambda number, frame: received.append(number))

from distlab import cluster_spec, saved_states  # before TensorFlow: distlab selects tf-keras

import horovod.tensorflow as hvd
import network
import tensorflow as tf

START_AGAIN = 85
"""Exit status of a job that has saved and is not done: Linux's ERESTART."""

mean_loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def anybody_has_a_notice() -> bool:
    """Whether any rank has received the signal; all ranks call it together and get the same answer."""
    return float(hvd.allreduce(tf.constant(float(bool(received))), op=hvd.Sum, name="notices")) > 0


def main() -> None:
    """Train from the newest checkpoint, or from the start, to the end or to a signal."""
    arguments = network.parser("Train with Horovod so that the job can begin again.")
    arguments.add_argument("--checkpoints", type=Path, required=True, help="that rank 0 sees in every attempt")
    arguments.add_argument("--gloo-from-slurm", action="store_true", help="srun has started the ranks, without MPI")
    options = arguments.parse_args()
    if options.gloo_from_slurm:
        cluster_spec.gloo_from_slurm()
    else:
        cluster_spec.check_mpi_of_srun(or_gloo=True)
    hvd.init()
    if gpus := tf.config.list_physical_devices("GPU"):
        own = gpus[hvd.local_rank() % len(gpus)]
        tf.config.set_visible_devices(own, "GPU")
        tf.config.experimental.set_memory_growth(own, True)
    layers = [tf.keras.layers.Dense(options.units, activation="relu"), tf.keras.layers.Dense(10)]
    model = tf.keras.Sequential([tf.keras.layers.Input((network.INPUTS,)), *layers])
    model.set_weights(network.first_weights(options.units))
    optimizer = tf.keras.optimizers.SGD(options.learning_rate, momentum=network.MOMENTUM)
    optimizer.build(model.trainable_variables)  # else there would be no momentum to restore into
    checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer)
    manager = tf.train.CheckpointManager(checkpoint, str(options.checkpoints), max_to_keep=2)
    if hvd.rank() == 0 and manager.latest_checkpoint:
        saved_states.checkpoint(manager.latest_checkpoint, options.checkpoints, checkpoint)  # or an older one
    hvd.broadcast_variables([*model.variables, *optimizer.variables], root_rank=0)  # also the count of steps

    @tf.function(autograph=False)  # nothing to translate
    def step(images: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = mean_loss(labels, model(images, training=True))
        tape = hvd.DistributedGradientTape(tape)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    loss = tf.constant(float("nan"))
    first = int(optimizer.iterations)
    batches = network.Batches(options, hvd.rank(), hvd.size(), steps_done=first)
    if hvd.rank() == 0:
        print(f"begins after step {first}", flush=True)
    for images, labels in batches:
        loss = step(images, labels)
        done = int(optimizer.iterations)
        if done < options.steps and anybody_has_a_notice():
            if hvd.rank() == 0:
                manager.save(checkpoint_number=done)
                print(f"saved at step {done}; start me again", flush=True)
            hvd.allreduce(tf.constant(0.0), name="saved")  # nobody leaves before rank 0 has saved
            for notice in NOTICES:
                signal.signal(notice, signal.SIG_IGN)  # a second one, while Python ends, would change the status
            sys.exit(START_AGAIN)
    network.report(batches, "Horovod", float(hvd.allreduce(loss, name="loss")), model.get_weights())


if __name__ == "__main__":
    main()
