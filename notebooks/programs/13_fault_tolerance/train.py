"""Train with MultiWorkerMirroredStrategy so that the job can be started again after a fault.

    distlab launch --workers 2 train.py -- --backup backup --kill-worker 1 --kill-at-step 13

Worker 1 sends itself SIGKILL; the same line without the last two options resumes. With
`--signal USR1` it sends itself a notice instead: all save together and exit with status 85,
"start me again". In a script for Slurm:

    srun --kill-on-bad-exit=0 --wait=60 python train.py --slurm --backup backup || status=$?
    if [ "$status" = 85 ]; then scontrol requeue $SLURM_JOB_ID; fi
"""

import argparse
import json
import os
import signal
import sys
import tempfile
from pathlib import Path

notices: list[int] = []  # set up first: one while TensorFlow is imported would end the program
if __name__ == "__main__":  # not where a notebook imports this file
    for notice in (signal.SIGUSR1, signal.SIGTERM):
        signal.signal(notice, lambda number, frame: notices.append(number))

from distlab import cluster_spec, data, models  # before TensorFlow: it selects tf-keras

import faults
import tensorflow as tf
import whole_checkpoints

Strategy = tf.distribute.Strategy
BATCH, IMAGES, SEED = 64, 768, 13  # of all workers together in a step; in an epoch


def batches(options: argparse.Namespace, first_step: int) -> tf.data.Dataset:
    """The global batches from `first_step` on; a batch depends on its step alone."""
    images, labels = (tf.constant(part[:IMAGES]) for part in data.load(options.dataset).train)

    def image_at(position: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        epoch, place = position // IMAGES, position % IMAGES
        index = tf.random.experimental.index_shuffle(place, [SEED, epoch], IMAGES - 1)
        return images[index], labels[index]

    by_sample, policy = tf.data.Options(), tf.data.experimental.AutoShardPolicy
    by_sample.experimental_distribute.auto_shard_policy = policy.DATA
    by_sample.autotune.enabled = False  # the end would wait for it, sometimes half a minute
    positions = tf.data.Dataset.range(first_step * BATCH, options.epochs * IMAGES)
    return positions.map(image_at).batch(BATCH).with_options(by_sample)


def resume(strategy: Strategy, checkpoint: tf.train.Checkpoint, folder: Path | None) -> None:
    """Restore the newest whole checkpoint: the chief, who has the folder, reads it for all."""
    if folder:
        chosen = whole_checkpoints.newest(folder)
        if chosen:
            checkpoint.read(chosen).assert_existing_objects_matched()
        whole_checkpoints.rewrite_list(folder, chosen)  # the manager forgets the damaged ones
    variables = [*checkpoint.model.variables, *checkpoint.optimizer.variables]
    values = strategy.run(values_of_chief, args=(variables,))
    for variable, value in zip(variables, values, strict=True):
        variable.assign(strategy.experimental_local_results(value)[0])


def values_of_chief(variables: list[tf.Variable]) -> list[tf.Tensor]:
    """A broadcast made of an all-reduce: the chief adds its values, the others zeros."""
    replica = tf.distribute.get_replica_context()
    is_chief = replica.replica_id_in_sync_group == 0
    parts = [tf.where(is_chief, variable, tf.zeros_like(variable)) for variable in variables]
    return [replica.all_reduce(tf.distribute.ReduceOp.SUM, part) for part in parts]


class SaveAndStop(tf.keras.callbacks.Callback):
    """Saves every five steps. When any worker has a notice, all save at one step and stop."""

    def __init__(self, strategy: Strategy, manager: tf.train.CheckpointManager) -> None:
        super().__init__()
        self.strategy, self.manager = strategy, manager

    def on_train_batch_end(self, batch: int, logs: dict | None = None) -> None:
        """After each step of this worker."""
        step = int(self.model.optimizer.iterations.numpy())
        is_stopping = have_notice(self.strategy) > 0  # the same on all workers
        if step % 5 == 0 or is_stopping:
            prefix = self.manager.save(checkpoint_number=step)  # all workers call it
            whole_checkpoints.seal(prefix)
        if is_stopping:
            have_notice(self.strategy)  # a barrier: nobody leaves before the chief has saved
            after = f" after {signal.Signals(notices[0]).name}" if notices else ""
            print(f"saved at step {step}{after}; start me again", flush=True)
            self.model.stop_training = True


def have_notice(strategy: Strategy) -> float:
    """How many replicas have a notice: an all-reduce that all workers call together."""
    own = strategy.run(lambda: tf.constant(float(bool(notices))))
    return float(strategy.reduce("SUM", own, axis=None))


def train(options: argparse.Namespace, strategy: Strategy, worker: int) -> tuple[bool, dict]:
    """Whether all steps are done; the first step of this run and the weights."""
    tf.keras.utils.set_random_seed(SEED)
    tf.get_logger().setLevel("ERROR")  # callbacks are slow compared with such short steps
    with strategy.scope():
        model = models.mlp(dropout=0.0)
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(tf.keras.optimizers.SGD(0.1, momentum=0.9), loss)
        model.optimizer.build(model.trainable_variables)  # the momentum, to restore into
    checkpoint = tf.train.Checkpoint(model=model, optimizer=model.optimizer)
    resume(strategy, checkpoint, options.backup if worker == 0 else None)
    first, total = int(model.optimizer.iterations.numpy()), options.epochs * IMAGES // BATCH
    print(f"begins after step {first}", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        place = str(options.backup if worker == 0 else scratch)
        manager = tf.train.CheckpointManager(checkpoint, place, max_to_keep=2)
        callbacks = [SaveAndStop(strategy, manager), faults.OfWorker(options, worker)]
        if first < total:  # in one call, since `fit` cannot begin inside an epoch
            how = {"steps_per_epoch": total - first, "callbacks": callbacks, "verbose": 0}
            model.fit(batches(options, first), **how)
    weights = [weight.tolist() for weight in model.get_weights()]
    is_done = int(model.optimizer.iterations.numpy()) >= total
    return is_done, {"first_step": first, "weights": weights}


def main() -> None:
    """Train from the newest whole checkpoint, or from the start, to the end or to a notice."""
    parser = argparse.ArgumentParser(description="Train and resume after a fault.")
    parser.add_argument("--dataset", default="digits", choices=data.NAMES)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--backup", type=Path, required=True, help="the chief's folder")
    parser.add_argument("--slurm", action="store_true", help="find the workers by Slurm")
    parser.add_argument("--result", type=Path, help="JSON file that the chief writes")
    faults.add_options(parser)
    options = parser.parse_args()
    if options.slurm:
        os.environ["TF_CONFIG"] = cluster_spec.from_slurm()
    with cluster_spec.interruptible():
        strategy = tf.distribute.MultiWorkerMirroredStrategy()
    worker = strategy.cluster_resolver.task_id or 0
    is_done, result = train(options, strategy, worker)
    if not is_done:
        sys.exit(85)  # it has saved and is not done: the RequeueExit of many Slurm clusters
    if worker == 0 and options.result:
        options.result.write_text(json.dumps(result) + "\n")
    print("done", flush=True)


if __name__ == "__main__":
    main()
