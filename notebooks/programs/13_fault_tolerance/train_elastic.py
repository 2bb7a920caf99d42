r"""Train with Horovod Elastic: the job continues when a rank dies, and grows when a slot is added.

On a laptop, two names for this machine stand for two hosts. A host-discovery script prints the hosts that there are:

    printf 'localhost:1\n127.0.0.1:1\n' > hosts.txt
    printf '#!/bin/sh\ncat hosts.txt\n' > discover.sh; chmod +x discover.sh
    horovodrun -np 2 --min-np 1 --max-np 2 --gloo --host-discovery-script ./discover.sh \
        python train_elastic.py --hosts hosts.txt --kill-at-step 13 --add-at-step 22 --result result.json

Elastic needs horovodrun and Gloo: mpirun ends all ranks when one dies. Under Slurm, in a batch script, `discover.sh`
prints the nodes that still answer, for example

    sinfo --noheader --nodes "$SLURM_JOB_NODELIST" --states idle,alloc,mixed --Node --format "%n:1"

`--kill-at-step 13` and `--add-at-step 22` simulate the faults (`elastic_faults.py`). The state is committed to memory
every `--commit-every` steps. By default the global batch does not depend on the number of ranks, so neither do the
weights, if it divides by the number of ranks. With `--per-rank 32` each rank has 32 images in a step, whatever the
number of ranks, and the learning rate follows the global batch. Rank 0 writes the result: where it began or went on,
the steps that it did with their times, the final loss and the weights.
"""

import argparse
import json
import time
from pathlib import Path

from distlab import data, models  # before TensorFlow: it selects tf-keras

import elastic_faults
import horovod.tensorflow.keras as hvd
import tensorflow as tf
from horovod.common.exceptions import HostsUpdatedInterrupt

BATCH, RATE, SEED = 64, 0.1, 13  # images in a global batch, and the learning rate for so many
starts: list[tuple[int, int, float]] = []  # where this process began or went on: (steps done, world size, rate)
executed: list[tuple[int, int, float]] = []  # its steps, also lost ones: (steps done after it, world size, second)


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Train with Horovod Elastic.")
    parser.add_argument("--dataset", default="digits", choices=data.NAMES)
    parser.add_argument("--images", type=int, default=32 * BATCH, help="to train on in all (default: 2048)")
    parser.add_argument("--images-per-epoch", type=int, default=16 * BATCH, help="after these they begin again")
    parser.add_argument("--per-rank", type=int, help="images of each rank in a step (default: an equal part of 64)")
    parser.add_argument("--commit-every", type=int, default=5, help="steps from one commit to the next (default: 5)")
    parser.add_argument("--result", type=Path, help="JSON file that rank 0 writes")
    elastic_faults.add_options(parser)
    return parser.parse_args()


def batches(options: argparse.Namespace, seen: int) -> tf.data.Dataset:
    """This rank's share of the global batches when so many images have been seen: a function of their number."""
    count = options.images_per_epoch
    images, labels = (tf.constant(array[:count]) for array in data.load(options.dataset).train)

    def image_at(position: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        epoch = position // count
        index = tf.random.experimental.index_shuffle(position % count, [SEED, epoch], count - 1)
        return images[index], labels[index]

    positions = tf.data.Dataset.range(seen, options.images).shard(hvd.size(), hvd.rank())
    return positions.map(image_at).batch(global_batch(options) // hvd.size())


def global_batch(options: argparse.Namespace) -> int:
    """The images of all ranks in a step."""
    return options.per_rank * hvd.size() if options.per_rank else BATCH


class State(hvd.elastic.KerasState):
    """Saves itself when the hosts change. Else `seen` would go back to the last commit, but the weights would not."""

    def check_host_updates(self) -> None:
        """Look for new hosts, which ends `fit` by an exception."""
        try:
            super().check_host_updates()
        except HostsUpdatedInterrupt:
            self.save()
            raise


class Elastic(tf.keras.callbacks.Callback):
    """Commits every few steps, and looks for new hosts after every step."""

    def __init__(self, state: State, options: argparse.Namespace) -> None:
        super().__init__()
        self.state, self.options = state, options

    def on_train_batch_end(self, batch: int, logs: dict | None = None) -> None:
        """After each step of this rank."""
        step = int(self.model.optimizer.iterations)
        self.state.seen += global_batch(self.options)
        executed.append((step, hvd.size(), time.time()))
        if step % self.options.commit_every == 0:
            self.state.commit()  # a copy of all variables, and a look for new hosts
        else:
            self.state.check_host_updates()  # a small broadcast, cheap enough for every step


@hvd.elastic.run
def train(state: State, options: argparse.Namespace) -> None:
    """Train to the end; called again, with one state on all ranks, when the ranks change."""
    optimizer = state.model.optimizer
    step, rate = int(optimizer.iterations), float(optimizer.learning_rate)
    print(f"after step {step}: rank {hvd.rank()} of {hvd.size()}, rate {rate:g}", flush=True)
    starts.append((step, hvd.size(), rate))
    callbacks = [Elastic(state, options), elastic_faults.OfRank(state, options)]
    state.model.fit(batches(options, state.seen), callbacks=callbacks, verbose=0)


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
    tf.get_logger().setLevel("ERROR")  # else it finds every callback slow compared with steps as short as these
    optimizer = hvd.DistributedOptimizer(tf.keras.optimizers.SGD(RATE, momentum=0.9))
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss)
    model.optimizer.build(model.trainable_variables)  # else the first commit would hold no momentum

    def scale_rate() -> None:
        model.optimizer.learning_rate.assign(RATE * global_batch(options) / BATCH)

    scale_rate()
    state = State(model, seen=0)
    state.register_reset_callbacks([scale_rate])  # called whenever the ranks have changed
    train(state, options)
    if hvd.rank() == 0:
        images, labels = (array[: options.images_per_epoch] for array in data.load(options.dataset).train)
        result = {
            "starts": starts,
            "executed": executed,
            "loss": float(loss(labels, model(images))),
            "weights": [weight.tolist() for weight in model.get_weights()],
        }
        print(f"step {executed[-1][0]} is the last, loss {result['loss']:.4f}", flush=True)
        if options.result:
            options.result.write_text(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
