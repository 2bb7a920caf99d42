r"""Train with Horovod Elastic: the job continues when a rank dies, and grows when a slot is added.

On a laptop, two names for this machine stand for two hosts. A host-discovery script prints the hosts that there are:

    printf 'localhost:1\n127.0.0.1:1\n' > hosts.txt
    printf '#!/bin/sh\ncat hosts.txt\n' > discover.sh; chmod +x discover.sh
    horovodrun -np 2 --min-np 1 --max-np 2 --gloo --host-discovery-script ./discover.sh \
        python train_elastic.py --hosts hosts.txt --kill-at-step 13 --add-at-step 22 --result result.json

or `distlab.launch.horovodrun`, as notebook 13 does. Elastic needs horovodrun and Gloo: mpirun ends all ranks when one
dies. Under Slurm, in a batch script, `discover.sh` prints the nodes that still answer, for example

    sinfo --noheader --nodes "$SLURM_JOB_NODELIST" --states idle,alloc,mixed --Node --format "%n:1"

The program simulates the faults itself, so that they come at known steps: `--kill-at-step 13` lets the last rank
send itself SIGKILL after 13 steps, once; `--add-at-step 22` lets rank 0 write one more slot into `--hosts` after 22.
The state is committed to memory every `--commit-every` steps. The global batch does not depend on the number of ranks,
so neither do the weights, if it divides by the number of ranks. Rank 0 writes the result: the steps with their world
size, the final loss, the weights.
"""

import argparse
import json
import os
import signal
import time
from pathlib import Path

import horovod.tensorflow.keras as hvd
import tensorflow as tf

from distlab import data, models  # importing distlab also selects tf-keras for tf.keras

BATCH = 64
"""Images in a global batch, whatever the number of ranks."""

SEED = 13

starts: list[tuple[int, int]] = []
"""Where this process began or went on: (steps done, world size)."""

executed: list[tuple[int, int]] = []
"""Every step that this process did, also those that were lost: (steps done after it, world size)."""


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Train with Horovod Elastic.")
    parser.add_argument("--dataset", default="digits", choices=data.NAMES)
    parser.add_argument("--steps", type=int, default=32, help="steps in all (default: 32)")
    parser.add_argument("--steps-per-epoch", type=int, default=16, help="after these the images begin again")
    parser.add_argument("--commit-every", type=int, default=5, help="steps from one commit to the next (default: 5)")
    parser.add_argument("--kill-at-step", type=int, help="the last rank kills itself after so many steps")
    parser.add_argument("--add-at-step", type=int, help="rank 0 adds a slot to --hosts after so many steps")
    parser.add_argument("--hosts", type=Path, help="the file that the host-discovery script prints")
    parser.add_argument("--result", type=Path, help="JSON file that rank 0 writes")
    return parser.parse_args()


def batches(options: argparse.Namespace, first_step: int) -> tf.data.Dataset:
    """This rank's share of the global batches from `first_step` on; the images depend on the step alone."""
    count = options.steps_per_epoch * BATCH
    images, labels = (tf.constant(array[:count]) for array in data.load(options.dataset).train)

    def image_at(position: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        epoch = position // count
        index = tf.random.experimental.index_shuffle(position % count, [SEED, epoch], count - 1)
        return images[index], labels[index]

    positions = tf.data.Dataset.range(first_step * BATCH, options.steps * BATCH)
    return positions.shard(hvd.size(), hvd.rank()).map(image_at).batch(BATCH // hvd.size())


class Step(tf.keras.callbacks.Callback):
    """Counts a step when it is done, plays the faults that are due, and commits every few steps."""

    def __init__(self, state: hvd.elastic.KerasState, options: argparse.Namespace) -> None:
        super().__init__()
        self.state, self.options = state, options

    def on_train_batch_end(self, batch: int, logs: dict | None = None) -> None:
        """After each step of this rank."""
        state, options = self.state, self.options
        state.step += 1
        executed.append((state.step, hvd.size()))
        if state.step == options.kill_at_step and hvd.rank() > 0 and hvd.rank() == hvd.size() - 1:
            print(f"step {state.step} is done: rank {hvd.rank()} kills itself", flush=True)
            time.sleep(1)  # the others finish this step too and wait in the next one
            os.kill(os.getpid(), signal.SIGKILL)
        if state.step == options.add_at_step:
            state.save()
            self.add_slot()
        elif state.step % options.commit_every == 0:
            state.commit()

    def add_slot(self) -> None:
        """Offer a slot on rank 0's host and wait until the job has heard of it: an exception then ends this call."""
        if hvd.rank() == 0:
            host = os.environ["HOROVOD_HOSTNAME"]
            others = [line for line in self.options.hosts.read_text().split() if line.split(":")[0] != host]
            self.options.hosts.write_text("\n".join([f"{host}:2", *others]) + "\n")
        for _ in range(100):
            self.state.check_host_updates()
            time.sleep(0.2)


@hvd.elastic.run
def train(state: hvd.elastic.KerasState, options: argparse.Namespace) -> None:
    """Train from the step of `state` to the end; called again, with the committed state, whenever the ranks change."""
    print(f"after step {state.step}: rank {hvd.rank()} of {hvd.size()} begins", flush=True)
    starts.append((state.step, hvd.size()))
    state.model.fit(batches(options, state.step), callbacks=[Step(state, options)], verbose=0)


def main() -> None:
    """Build, train elastically and report."""
    options = parse()
    hvd.init()
    if gpus := tf.config.list_physical_devices("GPU"):
        own = gpus[hvd.local_rank() % len(gpus)]
        tf.config.set_visible_devices(own, "GPU")
        tf.config.experimental.set_memory_growth(own, True)
    tf.keras.utils.set_random_seed(SEED)
    model = models.mlp(dropout=0.0)
    optimizer = hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.1, momentum=0.9))
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss)
    model.optimizer.build(model.trainable_variables)  # else the first commit would hold no momentum
    state = hvd.elastic.KerasState(model, step=0)
    train(state, options)
    if hvd.rank() == 0:
        images, labels = (array[: options.steps_per_epoch * BATCH] for array in data.load(options.dataset).train)
        result = {
            "starts": starts,
            "executed": executed,
            "loss": float(loss(labels, model(images))),
            "weights": [weight.tolist() for weight in model.get_weights()],
        }
        print(f"step {state.step} is the last, loss {result['loss']:.4f}", flush=True)
        if options.result:
            options.result.write_text(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
