"""Ray starts the processes: Horovod's ranks, or the workers of TensorFlow's strategy.

On a laptop, with the interpreter that has Ray, where the program starts a Ray of its own and
ends it; after `ray start --head` and, on the other hosts, `ray start --address HOST0:PORT`;
and in a batch script for Slurm:

    python train_ray.py start.npz --way RayExecutor --result result.json
    python train_ray.py start.npz --way RayExecutor --workers 8 --address HOST0:PORT
    srun ray symmetric-run --address HOST0:PORT --min-nodes 2 -- python train_ray.py ...

`start.py` writes start.npz. Its weights and images travel to the workers through Ray; no
worker reads a file.
"""

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

import layouts
import numpy as np
from local_ray import running_ray

STEPS, GLOBAL_BATCH, LEARNING_RATE = 20, 48, 0.01  # the rate is that of one worker
Trained = tuple[list[float], list[np.ndarray]]  # losses and weights


def own_batches(start: dict, rank: int, ranks: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """This worker's part of each global batch."""
    for first in range(rank, STEPS * GLOBAL_BATCH, GLOBAL_BATCH):
        rows = slice(first, first + GLOBAL_BATCH - rank, ranks)
        yield start["images"][rows], start["labels"][rows]


def train_with_horovod(start: dict) -> Trained:
    """What each rank does, without a word of Ray; the losses, and the weights afterwards."""
    from distlab import models  # first: it selects tf-keras

    import horovod.tensorflow as hvd
    import tensorflow as tf

    hvd.init()
    if gpus := tf.config.list_physical_devices("GPU"):
        own = gpus[hvd.local_rank() % len(gpus)]
        tf.config.set_visible_devices(own, "GPU")
        tf.config.experimental.set_memory_growth(own, True)
    model = models.cnn(filters=16)
    if hvd.rank() == 0:
        model.set_weights(start["weights"])
    hvd.broadcast_variables(model.variables, root_rank=0)
    optimizer = tf.keras.optimizers.SGD(LEARNING_RATE * hvd.size(), momentum=0.9)
    losses = []
    for images, labels in own_batches(start, hvd.rank(), hvd.size()):
        with hvd.DistributedGradientTape(tf.GradientTape()) as tape:
            logits = model(images, training=True)
            entropies = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
            loss = tf.reduce_mean(entropies)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        losses.append(float(hvd.allreduce(loss)))
    return losses, model.get_weights()


def train_with_tensorflow(config: dict) -> None:
    """What each worker does: Ray has set TF_CONFIG, and stores what the chief reports."""
    from distlab import models  # first: it selects tf-keras

    import tensorflow as tf
    from ray import train

    start, context = config["start"], train.get_context()
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        model = models.cnn(filters=16)
        model.set_weights(start["weights"])
        rate = LEARNING_RATE * strategy.num_replicas_in_sync
        optimizer = tf.keras.optimizers.SGD(rate, momentum=0.9)
        optimizer.build(model.trainable_variables)

    def replica_step(images: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            logits = model(images, training=True)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
            loss = tf.nn.compute_average_loss(losses, global_batch_size=GLOBAL_BATCH)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(
            zip(gradients, model.trainable_variables, strict=True)
        )  # sums
        return loss

    @tf.function(autograph=False)
    def step(*batch: tf.Tensor) -> tf.Tensor:
        return strategy.reduce("SUM", strategy.run(replica_step, args=batch), axis=None)

    rank, size = context.get_world_rank(), context.get_world_size()
    losses = [float(step(*batch)) for batch in own_batches(start, rank, size)]
    with tempfile.TemporaryDirectory() as folder:
        layouts.write(Path(folder) / "weights.npz", model.get_weights())
        checkpoint = train.Checkpoint.from_directory(folder) if rank == 0 else None
        train.report({"losses": losses}, checkpoint=checkpoint)


def ray_executor(options: argparse.Namespace, start: dict, folder: Path) -> Trained:
    """Horovod on Ray."""
    from horovod.ray import RayExecutor

    settings = RayExecutor.create_settings(timeout_s=120)
    executor = RayExecutor(settings, num_workers=options.workers)  # use_gpu=True: a GPU each
    executor.start()
    of_ranks = executor.run(train_with_horovod, args=[start])
    executor.shutdown()
    return of_ranks[0]


def tensorflow_trainer(options: argparse.Namespace, start: dict, folder: Path) -> Trained:
    """TensorFlow's strategy for several workers on Ray."""
    from ray.train import RunConfig, ScalingConfig
    from ray.train.tensorflow import TensorflowTrainer

    run = TensorflowTrainer(
        train_with_tensorflow,
        train_loop_config={"start": start},
        scaling_config=ScalingConfig(num_workers=options.workers),  # use_gpu=True: a GPU each
        run_config=RunConfig(storage_path=str(options.folder or folder)),
    ).fit()
    with run.checkpoint.as_directory() as saved:
        return run.metrics["losses"], layouts.read(Path(saved) / "weights.npz")


if __name__ == "__main__":
    ways = {"RayExecutor": ray_executor, "TensorflowTrainer": tensorflow_trainer}
    parser = argparse.ArgumentParser(description="Train on Ray.")
    parser.add_argument("start", type=Path, help="the file that start.py wrote")
    parser.add_argument("--way", choices=ways, required=True)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--address", help="HOST:PORT of a Ray cluster; else one is started here"
    )
    parser.add_argument("--folder", type=Path, help="that all machines see, for checkpoints")
    parser.add_argument("--weights", type=Path, help=".npz file for the trained weights")
    parser.add_argument("--result", type=Path, help="JSON file")
    options = parser.parse_args()
    with np.load(options.start) as arrays:
        start = {name: arrays[name] for name in ("images", "labels")}
    start["weights"] = layouts.read(options.start)
    with running_ray(options.workers, options.address) as folder:
        losses, weights = ways[options.way](options, start, folder)
    result = {"ranks": options.workers, "losses": losses}
    layouts.report(options, f"{options.way}: {options.workers} workers,", result, weights)
