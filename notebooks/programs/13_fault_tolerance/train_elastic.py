r"""Train with Horovod Elastic: the job goes on when a rank dies, and grows with a new slot.

On a laptop, two names for this machine stand for two hosts. A host-discovery script prints the
hosts that there are:

    printf 'localhost:1\n127.0.0.1:1\n' > hosts.txt
    printf '#!/bin/sh\ncat hosts.txt\n' > discover.sh; chmod +x discover.sh
    horovodrun -np 2 --min-np 1 --max-np 2 --gloo --host-discovery-script ./discover.sh \
        python train_elastic.py --hosts hosts.txt --kill-at-step 13 --add-at-step 22

Elastic needs horovodrun and Gloo: mpirun ends all ranks when one dies. Under Slurm, in a batch
script, `discover.sh` prints the nodes that still answer, for example

    sinfo --noheader --nodes "$SLURM_JOB_NODELIST" --states idle,alloc,mixed --format "%n:1"

`--kill-at-step` and `--add-at-step` simulate the faults (`elastic_faults.py`). By default the
global batch does not depend on the number of ranks, so neither do the weights. With the option
`--per-rank 32` it does, and the learning rate follows it. Rank 0 writes its steps with their
times, and the weights.
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

BATCH, IMAGES, RATE, SEED = 64, 768, 0.1, 13  # of all ranks in a step; in an epoch
# The steps of this process, also lost ones: (steps done after it, world size, second).
executed: list[tuple[int, int, float]] = []


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Train with Horovod Elastic.")
    parser.add_argument("--dataset", default="digits", choices=data.NAMES)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--per-rank", type=int, help="in a step (default: a part of 64)")
    parser.add_argument("--result", type=Path, help="JSON file that rank 0 writes")
    elastic_faults.add_options(parser)
    return parser.parse_args()


def batches(options: argparse.Namespace, seen: int) -> tf.data.Dataset:
    """This rank's share of the global batches after so many images: by their numbers alone."""
    images, labels = (tf.constant(part[:IMAGES]) for part in data.load(options.dataset).train)

    def image_at(position: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        epoch, place = position // IMAGES, position % IMAGES
        index = tf.random.experimental.index_shuffle(place, [SEED, epoch], IMAGES - 1)
        return images[index], labels[index]

    positions = tf.data.Dataset.range(seen, options.epochs * IMAGES)
    own = positions.shard(hvd.size(), hvd.rank()).map(image_at)
    return own.batch(global_batch(options) // hvd.size())


def global_batch(options: argparse.Namespace) -> int:
    """The images of all ranks in a step."""
    return options.per_rank * hvd.size() if options.per_rank else BATCH


class State(hvd.elastic.KerasState):
    """Saves itself when the hosts change: else `seen` goes back to the last commit, alone."""

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
        if step % 5 == 0:
            self.state.commit()  # a copy of all variables, and a look for new hosts
        else:
            self.state.check_host_updates()  # a small broadcast, cheap enough for every step


@hvd.elastic.run
def train(state: State, options: argparse.Namespace) -> None:
    """Train to the end; called again, with one state on all ranks, when the ranks change."""
    optimizer = state.model.optimizer
    step, rate = int(optimizer.iterations), float(optimizer.learning_rate)
    print(f"after step {step}: rank {hvd.rank()} of {hvd.size()}, rate {rate:g}", flush=True)
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
    tf.get_logger().setLevel("ERROR")  # callbacks are slow compared with such short steps
    model = models.mlp(dropout=0.0)
    optimizer = hvd.DistributedOptimizer(tf.keras.optimizers.SGD(RATE, momentum=0.9))
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss)
    model.optimizer.build(model.trainable_variables)  # the momentum, for the first commit

    def scale_rate() -> None:
        model.optimizer.learning_rate.assign(RATE * global_batch(options) / BATCH)

    scale_rate()
    state = State(model, seen=0)
    state.register_reset_callbacks([scale_rate])  # called whenever the ranks have changed
    train(state, options)
    if hvd.rank() == 0:
        images, labels = (part[:IMAGES] for part in data.load(options.dataset).train)
        last = float(loss(labels, model(images)))
        print(f"step {executed[-1][0]} is the last, loss {last:.4f}", flush=True)
        if options.result:
            weights = [weight.tolist() for weight in model.get_weights()]
            result = {"executed": executed, "weights": weights}
            options.result.write_text(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
