"""Train the course's CNN on several workers: with `fit`, then with a measured custom loop.

By hand, in one terminal per worker, each with its own index:

    python train.py --index 0 --workers localhost:PORT0 localhost:PORT1
    python train.py --index 1 --workers localhost:PORT0 localhost:PORT1

By the launcher, which chooses the ports and sets TF_CONFIG:

    distlab launch --workers 2 train.py -- --folder saved --result result.json

With mpirun or under Slurm, each process takes its rank as the index (MPI itself is not used):

    export W='--workers HOST0:PORT0 HOST1:PORT1'
    mpirun -np 2 -x W bash -c 'python train.py --index $OMPI_COMM_WORLD_RANK $W'
    srun --ntasks=2 bash -c 'python train.py --index $SLURM_PROCID $W'

With neither --index nor TF_CONFIG it is one process. All workers must see `--folder`.
"""

import argparse
import json
import os
import tempfile
from pathlib import Path

from distlab import (
    cluster_spec,
    data,
    metrics,
    models,
)  # before TensorFlow: it selects tf-keras

import numpy as np
import tensorflow as tf

GLOBAL_BATCH, LEARNING_RATE, SEED = 48, 0.05, 7

parser = argparse.ArgumentParser(description="Train a CNN on several workers.")
parser.add_argument("--index", type=int, help="which of --workers this process is, from 0")
parser.add_argument("--workers", nargs="+", metavar="HOST:PORT", help="their addresses")
parser.add_argument("--dataset", choices=data.NAMES, default="digits")
parser.add_argument("--images", type=int, default=960, help="how many images to train on")
parser.add_argument("--folder", type=Path, default="saved", help="where the chief saves")
parser.add_argument("--result", type=Path, help="JSON file that the chief writes")
options = parser.parse_args()

if options.workers:
    cluster = {"worker": options.workers}
    os.environ["TF_CONFIG"] = cluster_spec.tf_config(cluster, "worker", options.index)
elif "TF_CONFIG" in os.environ:
    cluster_spec.check(os.environ["TF_CONFIG"])
with cluster_spec.interruptible():
    strategy = tf.distribute.MultiWorkerMirroredStrategy()  # before any other operation
tf.get_logger().setLevel("ERROR")
resolver = strategy.cluster_resolver
has_chief = "chief" in resolver.cluster_spec().jobs
is_chief = resolver.task_type == "chief" if has_chief else resolver.task_id in (None, 0)

scratch = tempfile.TemporaryDirectory()  # removed when the program ends
place = options.folder if is_chief else Path(scratch.name)  # every worker saves, one keeps

images, labels = data.load(options.dataset).train
order = np.random.default_rng(SEED).permutation(len(images))[: options.images]
arrays = (np.arange(len(order)), images[order], labels[order])  # each sample has a number
sharding = tf.data.Options()
sharding.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
samples = tf.data.Dataset.from_tensor_slices(arrays).with_options(sharding)
steps = len(order) // GLOBAL_BATCH


def gathered(of_steps: list[tf.Tensor]) -> list:
    """A tensor of each step, from all workers: [worker][step]."""
    own = tf.stack([strategy.experimental_local_results(step)[0] for step in of_steps])
    return strategy.gather(strategy.run(lambda: own[tf.newaxis]), axis=0).numpy().tolist()


def fit() -> dict:
    """Train with `Model.fit`; the strategy divides each global batch."""
    with strategy.scope():
        model = models.cnn()
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(tf.keras.optimizers.SGD(LEARNING_RATE), loss, metrics=["accuracy"])
    batches = samples.repeat().batch(GLOBAL_BATCH)
    without_numbers = batches.map(lambda number, image, label: (image, label))
    run = model.fit(without_numbers, steps_per_epoch=steps, verbose=0)
    (place / "fit").mkdir(parents=True, exist_ok=True)
    model.save(place / "fit" / "model.keras")  # every worker calls
    # The same pipeline once more, with the samples' numbers.
    epoch = zip(range(steps), strategy.experimental_distribute_dataset(batches), strict=False)
    seen = gathered([numbers for _, (numbers, _, _) in epoch])
    return {"history": run.history, "seen": seen}


def loop() -> dict:
    """Train with a loop that divides the samples by hand; a checkpoint every ten steps."""
    with strategy.scope():
        model = models.cnn()
        optimizer = tf.keras.optimizers.SGD(LEARNING_RATE)
        optimizer.build(model.trainable_variables)

    def own_batches(context: tf.distribute.InputContext) -> tf.data.Dataset:
        own = samples.shard(context.num_input_pipelines, context.input_pipeline_id)
        return own.repeat().batch(context.get_per_replica_batch_size(GLOBAL_BATCH))

    def gradients(images: tf.Tensor, labels: tf.Tensor) -> tuple[tf.Tensor, list[tf.Tensor]]:
        with tf.GradientTape() as tape:
            logits = model(images, training=True)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
            loss = tf.nn.compute_average_loss(losses, global_batch_size=GLOBAL_BATCH)
        return loss, tape.gradient(loss, model.trainable_variables)

    def step(images: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        loss, own = gradients(images, labels)
        optimizer.apply_gradients(zip(own, model.trainable_variables, strict=True))  # sums
        return loss

    gradients_alone = tf.function(lambda *batch: strategy.run(gradients, args=batch))
    whole_step = tf.function(lambda *batch: strategy.run(step, args=batch))
    losses, own_numbers, seconds = [], [], []
    checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer)
    manager = tf.train.CheckpointManager(checkpoint, place / "checkpoints", max_to_keep=2)
    batches = strategy.distribute_datasets_from_function(own_batches)
    for done, (numbers, *batch) in zip(range(1, steps + 1), batches, strict=False):
        with metrics.Stopwatch() as gradient_alone:  # how long without the exchange?
            gradients_alone(*batch)[1][-1].numpy()
        strategy.reduce("SUM", strategy.run(lambda: tf.constant(0.0)), axis=None)  # all wait
        with metrics.Stopwatch() as whole:
            losses.append(whole_step(*batch))
            model.trainable_variables[-1].numpy()  # waits for the update
        seconds.append([[watch.elapsed, watch.cpu] for watch in (gradient_alone, whole)])
        own_numbers.append(numbers)
        if done % 10 == 0 or done == steps:
            manager.save(checkpoint_number=done)  # every worker calls
    losses = np.sum(gathered(losses), axis=0).tolist()  # of the global batches
    return {"losses": losses, "seconds": seconds, "seen": gathered(own_numbers)}


workers = strategy.num_replicas_in_sync  # one replica in each
role = f"worker {resolver.task_id or 0} of {workers}{', the chief' if is_chief else ''}"
part = f"{GLOBAL_BATCH // workers} of the {GLOBAL_BATCH} images of each step"
print(f"{role}: {part}, {steps} steps", flush=True)
result = {}
for name, train in (("fit", fit), ("loop", loop)):
    tf.keras.utils.set_random_seed(SEED)
    result[name] = train()
if is_chief and options.result:
    options.result.write_text(json.dumps(result) + "\n")
