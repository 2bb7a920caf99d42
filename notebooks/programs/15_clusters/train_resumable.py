"""Train with Horovod so that a job may end and begin again, and no step is lost or done twice.

Under Slurm the batch script is slurm/requeue.sbatch; each attempt starts the program alike:

    srun --mpi=pmix --wait=60 python train_resumable.py --checkpoints saved --steps 20000
    horovodrun --gloo -np 2 python train_resumable.py --checkpoints saved  # on a laptop

Before the time limit Slurm sends SIGUSR1 to the ranks, to some earlier than to others. After
each step the ranks add up how many have received it. So all see it after the same step: rank 0
saves that step, and all end with status 85, "start me again". The next attempt goes on there.
"""

import signal
import sys
from pathlib import Path

NOTICES = (signal.SIGUSR1, signal.SIGTERM)
"""The time is nearly over: Slurm sends what the script asks for, PBS sends SIGTERM."""

received: list[int] = []
# A handler may run in the middle of anything, so it only remembers. It is set before anything
# else: a notice while modules are being imported would end the program.
for notice in NOTICES:
    signal.signal(notice, lambda number, frame: received.append(number))

import distlab  # noqa: F401 - before TensorFlow: it selects tf-keras

import horovod.tensorflow as hvd
import network
import tensorflow as tf
import train_horovod

START_AGAIN = 85
"""Exit status of a job that has saved and is not done: Linux's ERESTART."""


def anybody_has_a_notice() -> bool:
    """Whether any rank has received the signal; all ranks call it and get the same answer."""
    own = tf.constant(float(bool(received)))
    return float(hvd.allreduce(own, op=hvd.Sum, name="notices")) > 0


def main() -> None:
    """Train from the newest checkpoint, or from the start, to the end or to a signal."""
    arguments = train_horovod.parser("Train with Horovod so that the job can begin again.")
    arguments.add_argument("--checkpoints", type=Path, required=True, help="of rank 0")
    options = arguments.parse_args()
    train_horovod.begin(options)
    model = train_horovod.make_model(options.units)
    optimizer = tf.keras.optimizers.SGD(options.learning_rate, momentum=network.MOMENTUM)
    optimizer.build(model.trainable_variables)  # else there is no momentum to restore into
    checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer)
    manager = tf.train.CheckpointManager(checkpoint, str(options.checkpoints), max_to_keep=2)
    if hvd.rank() == 0 and (newest := manager.latest_checkpoint):
        checkpoint.restore(newest).assert_existing_objects_matched()
    hvd.broadcast_variables([*model.variables, *optimizer.variables], root_rank=0)
    step, loss = train_horovod.make_step(model, optimizer), tf.constant(float("nan"))
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
            hvd.allreduce(tf.constant(0.0), name="saved")  # rank 0 has, before anybody leaves
            for notice in NOTICES:  # a second one, while Python ends, would change the status
                signal.signal(notice, signal.SIG_IGN)
            sys.exit(START_AGAIN)
    train_horovod.report(batches, loss, model)


if __name__ == "__main__":
    main()
