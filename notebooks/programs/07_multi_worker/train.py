"""Train the course's CNN on several workers, by `fit` and by a custom loop.

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
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from distlab import cluster_spec, data, models  # before TensorFlow: it selects tf-keras

# isort: split
import tensorflow as tf


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Train a CNN on several workers.")
    parser.add_argument("--index", type=int, help="which of --workers this process is, from 0")
    parser.add_argument("--workers", nargs="+", metavar="HOST:PORT", help="their addresses")
    parser.add_argument(
        "--ways",
        nargs="+",
        choices=WAYS,
        default=list(WAYS),
        help="how to train, one after the other",
    )
    parser.add_argument("--dataset", choices=data.NAMES, default="digits")
    parser.add_argument("--images", type=int, default=960, help="how many images to train on")
    parser.add_argument(
        "--global-batch",
        type=int,
        default=48,
        help="images in a step, of all workers together",
    )
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--learning-rate", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--folder", type=Path, help="where the chief saves, if anywhere")
    parser.add_argument("--result", type=Path, help="JSON file that the chief writes")
    return parser.parse_args()


@contextmanager
def place_to_save(folder: Path | None, is_chief: bool) -> Iterator[Path]:
    """Where this worker saves: the chief in `folder`, the others in one that is removed."""
    with tempfile.TemporaryDirectory() as scratch:
        place = folder if folder and is_chief else Path(scratch)
        place.mkdir(parents=True, exist_ok=True)
        yield place


class Job:
    """The strategy, which worker this process is, and the images."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        if options.workers:
            cluster = {"worker": options.workers}
            os.environ["TF_CONFIG"] = cluster_spec.tf_config(cluster, "worker", options.index)
        elif "TF_CONFIG" in os.environ:
            cluster_spec.check(os.environ["TF_CONFIG"])
        # Before any other operation.
        with cluster_spec.interruptible():
            self.strategy = tf.distribute.MultiWorkerMirroredStrategy()
        self.workers = self.strategy.num_replicas_in_sync  # one replica in each worker
        resolver = self.strategy.cluster_resolver
        self.index = resolver.task_id or 0
        has_chief = "chief" in resolver.cluster_spec().jobs
        self.is_chief = resolver.task_type == "chief" if has_chief else self.index == 0
        tf.get_logger().setLevel("ERROR")
        images, labels = data.load(options.dataset).train
        order = np.random.default_rng(options.seed).permutation(len(images))[: options.images]
        self.arrays = (np.arange(len(order)), images[order], labels[order])
        self.steps_per_epoch = len(order) // options.global_batch
        self.steps = options.epochs * self.steps_per_epoch

    def subfolder(self, name: str) -> Path | None:
        """A folder in --folder; None without it."""
        return self.options.folder / name if self.options.folder else None

    def own(self, of_steps: list[tf.Tensor]) -> tf.Tensor:
        """This worker's tensor of each step: [step, ...]."""
        local = self.strategy.experimental_local_results
        return tf.stack([local(step)[0] for step in of_steps])

    def own_numbers(self, batches: tf.distribute.DistributedDataset) -> tf.Tensor:
        """The numbers of the samples that this worker gets in an epoch: [step, sample]."""
        epoch = zip(range(self.steps_per_epoch), batches, strict=False)
        return self.own([numbers for _, (numbers, _, _) in epoch])

    def gathered(self, own: tf.Tensor) -> np.ndarray:
        """This worker's tensor together with those of all workers: [worker, ...]."""
        return self.strategy.gather(self.strategy.run(lambda: own[tf.newaxis]), axis=0).numpy()


def fit(job: Job) -> dict:
    """Train with `Model.fit`; the strategy divides each global batch."""
    with job.strategy.scope():
        model = models.cnn()
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        optimizer = tf.keras.optimizers.SGD(job.options.learning_rate)
        model.compile(optimizer, loss, metrics=["accuracy"])
    sharding = tf.data.Options()
    policy = tf.data.experimental.AutoShardPolicy.DATA
    sharding.experimental_distribute.auto_shard_policy = policy
    samples = tf.data.Dataset.from_tensor_slices(job.arrays)
    samples = samples.repeat().batch(job.options.global_batch)
    samples = samples.with_options(sharding)
    without_numbers = samples.map(lambda numbers, images, labels: (images, labels))
    run = model.fit(
        without_numbers,
        epochs=job.options.epochs,
        steps_per_epoch=job.steps_per_epoch,
        verbose=0,
    )
    with place_to_save(job.subfolder("fit"), job.is_chief) as place:
        model.save(place / "model.keras")  # every worker calls
    own_numbers = job.own_numbers(job.strategy.experimental_distribute_dataset(samples))
    return {"history": run.history, "seen": job.gathered(own_numbers).tolist()}


def loop(job: Job) -> dict:
    """Train with a loop that divides the samples by hand; a checkpoint every ten steps."""
    with job.strategy.scope():
        model = models.cnn()
        optimizer = tf.keras.optimizers.SGD(job.options.learning_rate)
        optimizer.build(model.trainable_variables)
    checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer)

    def own_batches(context: tf.distribute.InputContext) -> tf.data.Dataset:
        samples = tf.data.Dataset.from_tensor_slices(job.arrays)
        samples = samples.shard(context.num_input_pipelines, context.input_pipeline_id)
        own_batch = context.get_per_replica_batch_size(job.options.global_batch)
        return samples.repeat().batch(own_batch)

    def gradients(images: tf.Tensor, labels: tf.Tensor) -> tuple[tf.Tensor, list[tf.Tensor]]:
        with tf.GradientTape() as tape:
            logits = model(images, training=True)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
            size = job.options.global_batch
            loss = tf.nn.compute_average_loss(losses, global_batch_size=size)
        return loss, tape.gradient(loss, model.trainable_variables)

    def step(images: tf.Tensor, labels: tf.Tensor) -> tuple[tf.Tensor, list[tf.Tensor]]:
        loss, own_gradients = gradients(images, labels)
        # It sums over all workers.
        optimizer.apply_gradients(zip(own_gradients, model.trainable_variables, strict=True))
        return loss, own_gradients

    def on_workers(part: Callable) -> Callable:
        # Nothing in it depends on a tensor's value, so AutoGraph has nothing to convert.
        return tf.function(
            lambda images, labels: job.strategy.run(part, args=(images, labels)),
            autograph=False,
        )

    whole_step, gradients_alone = on_workers(step), on_workers(gradients)
    losses, own_numbers, seconds = [], [], []
    with place_to_save(job.subfolder("checkpoints"), job.is_chief) as place:
        manager = tf.train.CheckpointManager(checkpoint, str(place), max_to_keep=2)
        batches = job.strategy.distribute_datasets_from_function(own_batches)
        for step_number, batch in zip(range(1, job.steps + 1), batches, strict=False):
            numbers, images, labels = batch
            clocks = [(time.perf_counter(), time.process_time())]
            gradients_alone(images, labels)[1][-1].numpy()  # how long without the exchange?
            clocks.append((time.perf_counter(), time.process_time()))
            losses.append(whole_step(images, labels)[0])
            model.trainable_variables[-1].numpy()
            clocks.append((time.perf_counter(), time.process_time()))
            own_numbers.append(numbers)
            # [gradient alone, whole step][elapsed, of processors]
            seconds.append(np.diff(clocks, axis=0).tolist())
            if step_number % 10 == 0 or step_number == job.steps:
                manager.save(checkpoint_number=step_number)  # every worker calls
    own_losses = job.strategy.run(lambda: job.own(losses))
    return {
        "losses": job.strategy.reduce("SUM", own_losses, axis=None).numpy().tolist(),
        "seconds": seconds,
        "seen": job.gathered(job.own(own_numbers)).tolist(),
    }


WAYS = {"fit": fit, "loop": loop}


def main() -> None:
    """Train, and write the result."""
    options = parse()
    job = Job(options)
    size = options.global_batch
    parts = f"{size // job.workers} of the {size} images of each step, {job.steps} steps"
    print(
        f"worker {job.index} of {job.workers}{', the chief' if job.is_chief else ''}: {parts}",
        flush=True,
    )
    result = {"workers": job.workers, "steps_per_epoch": job.steps_per_epoch}
    for name in options.ways:
        tf.keras.utils.set_random_seed(options.seed)
        result[name] = WAYS[name](job)
    if job.is_chief and options.result:
        options.result.write_text(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
