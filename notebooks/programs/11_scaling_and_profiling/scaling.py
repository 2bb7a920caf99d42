"""Weak and strong scaling of a training step with Horovod, several world sizes in one launch.

    mpirun -np 4 --oversubscribe --bind-to none python scaling.py --result result.json
    srun --mpi=pmix --nodes=2 --ntasks-per-node=4 python scaling.py --result result.json

Horovod is initialised again for each world size, and the ranks that have no part wait.
Measured are seconds per step of the slowest rank; each has a core, and one thread there:

    weak        every rank has BATCH images
    strong      all ranks together have as many
    turns       two ranks, each network: one alone, both without the all-reduce, both with it
    all_reduce  Horovod's all-reduce of some sizes, by itself, on two ranks
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

from distlab import devices, metrics, models  # before TensorFlow: it selects tf-keras

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf
from mpi4py import MPI  # after TensorFlow: started before it, Open MPI crashes at the end

BATCH, ALL_REDUCE_BYTES = 64, [4**power for power in range(5, 13)]  # 1 KiB to 16 MiB
CORES, WORLD = devices.allowed_cores(), MPI.COMM_WORLD


def take_device(local_rank: int) -> None:
    """The GPU of this local rank where there is one; else one core and one thread."""
    if gpus := tf.config.list_physical_devices("GPU"):
        own = gpus[local_rank % len(gpus)]
        tf.config.set_visible_devices(own, "GPU")
        tf.config.experimental.set_memory_growth(own, True)
        return
    devices.hold_cores({devices.core_of(local_rank, CORES)})
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)


def wait_for(ranks: MPI.Comm) -> None:
    """A barrier that does not spin, unlike MPI's own."""
    request = ranks.Ibarrier()
    while not request.Test():
        time.sleep(0.02)


def dense() -> tf.keras.Model:
    """A network with many weights and little work for each, so that the all-reduce is long."""
    inputs = [tf.keras.layers.Input(models.IMAGE_SHAPE), tf.keras.layers.Flatten()]
    hidden = [tf.keras.layers.Dense(1024, activation="relu") for _ in range(2)]
    return tf.keras.Sequential([*inputs, *hidden, tf.keras.layers.Dense(models.CLASSES)])


class Training:
    """A network with its training step, alone or with the other ranks."""

    def __init__(self, options: argparse.Namespace, model: tf.keras.Model) -> None:
        self.options, self.model = options, model
        self.optimizer = tf.keras.optimizers.SGD(0.01)
        self.optimizer.build(self.model.trainable_variables)
        self.loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        self.images = tf.random.uniform((BATCH, *models.IMAGE_SHAPE))
        self.labels = tf.random.uniform((BATCH,), 0, models.CLASSES, tf.int64)

    def step(self, with_all_reduce: bool) -> Callable[[tf.Tensor, tf.Tensor], tf.Tensor]:
        """A step as a graph; its trace holds what Horovod was initialised with."""

        def train(images: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
            with tf.GradientTape() as tape:
                loss = self.loss(labels, self.model(images, training=True))
            if with_all_reduce:  # not when the ranks work apart
                tape = hvd.DistributedGradientTape(tape)
            gradients = tape.gradient(loss, self.model.trainable_variables)
            pairs = zip(gradients, self.model.trainable_variables, strict=True)
            self.optimizer.apply_gradients(pairs)
            return loss

        shapes = [tf.TensorSpec((None, *models.IMAGE_SHAPE)), tf.TensorSpec((None,), tf.int64)]
        return tf.function(train, input_signature=shapes, autograph=False)

    def block(self, ranks: MPI.Comm, step: Callable, batch: int, doing: int) -> float:
        """Seconds per step, done by the first `doing` ranks; 0 if this rank is idle."""
        wait_for(ranks)  # those that are idle must not use a core meanwhile
        ranks.Barrier()
        if ranks.rank >= doing:
            return 0.0
        start = time.perf_counter()
        for _ in range(self.options.steps):
            loss = step(self.images[:batch], self.labels[:batch])
        loss.numpy()
        return (time.perf_counter() - start) / self.options.steps

    def seconds(self, ranks: MPI.Comm, *kinds: tuple[Callable, int, int]) -> list[list[float]]:
        """Seconds per step for each kind (step, batch, doing ranks) and block, in turns."""
        rounds = range(1 + self.options.blocks)
        blocks = [[self.block(ranks, *kind) for kind in kinds] for _ in rounds]
        return np.max(ranks.allgather(blocks[1:]), axis=0).T.tolist()


def all_reduce_seconds(array_bytes: int) -> float:
    """The median of nine all-reduces; the first does not count."""
    tensor, how = tf.ones(array_bytes // 4), {"op": hvd.Sum, "name": f"bytes.{array_bytes}"}
    return metrics.median_seconds(lambda: hvd.allreduce(tensor, **how).numpy(), repeats=9)


def measure(trainings: dict[str, Training], ranks: MPI.Comm) -> dict:
    """Weak and strong scaling for these ranks, and all the rest if they are two."""
    hvd.init(comm=ranks)  # for these ranks alone
    size, measured = ranks.size, {"turns": {}}
    for network, training in trainings.items():
        alone, together = training.step(False), training.step(True)
        if network == "dense":
            kinds = (together, BATCH, size), (together, BATCH // size, size)
            measured["weak"], measured["strong"] = training.seconds(ranks, *kinds)
        if size == 2:
            kinds = (alone, BATCH, 1), (alone, BATCH, 2), (together, BATCH, 2)
            measured["turns"][network] = training.seconds(ranks, *kinds)
    if size == 2:
        measured["all_reduce"] = list(map(all_reduce_seconds, ALL_REDUCE_BYTES))
    hvd.shutdown()
    return measured


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Weak and strong scaling of a training step.")
    parser.add_argument("--blocks", type=int, default=7, help="of steps, after a warm-up")
    parser.add_argument("--steps", type=int, default=4, help="of a block (default: 4)")
    parser.add_argument("--result", type=Path, help="JSON file that rank 0 writes")
    options = parser.parse_args()
    take_device(WORLD.Split_type(MPI.COMM_TYPE_SHARED).rank)
    networks = {"dense": dense(), "cnn": models.cnn()}
    trainings = {name: Training(options, network) for name, network in networks.items()}
    sizes = {}
    for size in [2**power for power in reversed(range(WORLD.size.bit_length()))]:
        wait_for(WORLD)
        ranks = WORLD.Split(0 if WORLD.rank < size else MPI.UNDEFINED, WORLD.rank)
        if ranks != MPI.COMM_NULL:
            sizes[size] = measure(trainings, ranks)
    wait_for(WORLD)
    if WORLD.rank == 0 and options.result:
        parameters = {name: network.count_params() for name, network in networks.items()}
        result = {"cores": len(CORES), "batch": BATCH, "sizes": sizes}
        result |= {"parameters": parameters, "all_reduce_bytes": ALL_REDUCE_BYTES}
        options.result.write_text(json.dumps(result) + "\n")
