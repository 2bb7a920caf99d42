"""Train with MultiWorkerMirroredStrategy so that the job can be started again after a fault.

On a laptop, two workers; each address is a free port of this machine, the same for both. In one terminal:

    export TF_CONFIG='{"cluster": {"worker": ["localhost:23456", "localhost:23457"]},
                       "task": {"type": "worker", "index": 0}}'
    python train.py --backup backup --result result.json

and in another one the same with `"index": 1`. Shorter, with the course's launcher, which chooses the ports:

    distlab launch --workers 2 train.py -- --backup backup --result result.json

Add `--kill-worker 1 --kill-at-step 13`, and worker 1 sends itself SIGKILL after 13 steps. The same command without it
goes on from the last save. Under Slurm, after `salloc --nodes=2`, a resolver takes the place of TF_CONFIG:

    srun --nodes=2 --ntasks-per-node=1 python train.py --slurm --backup /shared/backup --result result.json

`--backup` must be a folder that all workers see. The chief (worker 0) writes the result: the first step of this run,
the step of each save, the final loss and the weights. Each worker adds a line to `--steps-done FOLDER/worker-N.txt`
for each step that it has done, in this run and in earlier ones, so that a step done twice can be seen.
"""

import argparse
import json
import os
import signal
import time
from pathlib import Path

import tensorflow as tf

from distlab import data, models  # importing distlab also selects tf-keras for tf.keras

BATCH = 64
"""Images in a global batch, whatever the number of workers."""

SEED = 13


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Train so that the job can be started again after a fault.")
    parser.add_argument("--dataset", default="digits", choices=data.NAMES)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--steps-per-epoch", type=int, default=12)
    parser.add_argument("--save-every", type=int, default=5, help="steps from one save to the next (default: 5)")
    parser.add_argument("--backup", type=Path, required=True, help="folder for BackupAndRestore, seen by all workers")
    parser.add_argument("--kill-worker", type=int, help="the worker that kills itself")
    parser.add_argument("--kill-at-step", type=int, help="after so many steps")
    parser.add_argument("--steps-done", type=Path, help="folder in which each worker notes its steps")
    parser.add_argument("--slurm", action="store_true", help="find the other workers by Slurm's variables")
    parser.add_argument("--result", type=Path, help="JSON file that the chief writes")
    return parser.parse_args()


def steps_in_backup(folder: Path) -> int:
    """How many steps the newest backup holds; 0 without one."""
    newest = tf.train.latest_checkpoint(folder / "chief")
    return int(tf.train.load_variable(newest, "train_counter/.ATTRIBUTES/VARIABLE_VALUE")) if newest else 0


def batches(options: argparse.Namespace, first_step: int) -> tf.data.Dataset:
    """The global batches from `first_step` on; which images a batch has depends on the step alone."""
    count = options.steps_per_epoch * BATCH
    images, labels = (tf.constant(array[:count]) for array in data.load(options.dataset).train)

    def image_at(position: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        epoch = position // count
        index = tf.random.experimental.index_shuffle(position % count, [SEED, epoch], count - 1)
        return images[index], labels[index]

    by_sample = tf.data.Options()
    by_sample.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    positions = tf.data.Dataset.range(first_step * BATCH, options.epochs * count)
    return positions.map(image_at).batch(BATCH).with_options(by_sample)


class StepsDone(tf.keras.callbacks.Callback):
    """Notes each step that is done, and plays the fault."""

    def __init__(self, options: argparse.Namespace, worker: int, steps: int) -> None:
        super().__init__()
        self.options, self.worker, self.steps = options, worker, steps

    def on_train_batch_end(self, batch: int, logs: dict | None = None) -> None:
        """After each step of this worker."""
        self.steps += 1
        if self.options.steps_done:
            with (self.options.steps_done / f"worker-{self.worker}.txt").open("a") as file:
                file.write(f"{self.steps}\n")
        if self.worker == self.options.kill_worker and self.steps == self.options.kill_at_step:
            print(f"step {self.steps} is done: worker {self.worker} kills itself", flush=True)
            time.sleep(1)  # the others finish this step too and wait in the next one
            os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    """Train from the last save, or from the start, to the end."""
    options = parse()
    resolver = tf.distribute.cluster_resolver.SlurmClusterResolver() if options.slurm else None
    strategy = tf.distribute.MultiWorkerMirroredStrategy(cluster_resolver=resolver)
    worker = strategy.cluster_resolver.task_id or 0
    is_chief = worker == 0

    tf.keras.utils.set_random_seed(SEED)
    tf.get_logger().setLevel("ERROR")  # else it finds every callback slow beside steps as short as these
    with strategy.scope():
        model = models.mlp(dropout=0.0)
        model.compile(
            tf.keras.optimizers.SGD(0.1, momentum=0.9),
            tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        )
    first = steps_in_backup(options.backup)
    print(f"begins after step {first}", flush=True)
    backup = tf.keras.callbacks.BackupAndRestore(
        str(options.backup), save_freq=options.save_every, delete_checkpoint=False
    )
    model.fit(
        batches(options, first),
        epochs=options.epochs,
        steps_per_epoch=options.steps_per_epoch,
        callbacks=[backup, StepsDone(options, worker, first)],
        verbose=0,
    )
    if is_chief and options.result:
        result = {"first_step": first, "weights": [weight.tolist() for weight in model.get_weights()]}
        options.result.write_text(json.dumps(result) + "\n")
    print("done", flush=True)


if __name__ == "__main__":
    main()
