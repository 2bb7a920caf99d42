"""Weak and strong scaling of a training step with Horovod, several world sizes in one launch.

On a laptop, world sizes 4, 2 and 1, one after the other:

    mpirun -np 4 --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 python scaling.py --result result.json

Under Slurm, in a batch script or after `salloc --nodes=2 --ntasks-per-node=4`:

    srun --mpi=pmix python scaling.py --sizes 8 4 2 1 --result result.json

Every process starts once; Horovod is initialised again for each world size, and the ranks that have no part wait.

| measured | what it is |
|---|---|
| weak | a step in which every rank has --batch images |
| strong | a step in which all ranks together have --batch images |
| turns | of each network the weak step of two ranks, in turn: one alone, both without the all-reduce, both with it |
| all_reduce | Horovod's all-reduce of some sizes, by itself, on two ranks |
| placements | the weak step of two ranks by which cores they may use |
| counted | weak steps of two ranks, for a library that counts MPI calls (`mpi_profile.c`): these and nothing else |

Each is the time of several blocks of steps after a warm-up, in seconds per step, of the slowest rank. Every rank has
one core and one thread of TensorFlow; `core_share` is what the poorest had of its core. Nothing is learned or saved:
images and labels are random. Everything but `turns` is measured with the first network, whose gradient is large.
"""

import argparse
import json
import time
import timeit
from collections.abc import Callable
from pathlib import Path

from distlab import devices, models  # before TensorFlow: it selects tf-keras

# isort: split
import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf
from mpi4py import MPI  # after TensorFlow: started before it, Open MPI crashes at the end

ALL_REDUCE_BYTES = [4**power for power in range(5, 13)]  # 1 KiB to 16 MiB
CORES, WORLD = devices.allowed_cores(), MPI.COMM_WORLD


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Weak and strong scaling of a training step.")
    parser.add_argument("--sizes", type=int, nargs="+", help="world sizes (default: the powers of two up to all)")
    parser.add_argument("--batch", type=int, default=64, help="images of a rank, or of all (default: 64)")
    parser.add_argument("--blocks", type=int, default=7, help="measurements, after one that does not count")
    parser.add_argument("--steps", type=int, default=4, help="steps in a block (default: 4)")
    parser.add_argument("--result", type=Path, help="JSON file that rank 0 writes")
    options = parser.parse_args()
    options.sizes = sorted(options.sizes or [2**power for power in range(WORLD.size.bit_length())], reverse=True)
    return options


def take_device(local_rank: int) -> None:
    """The GPU of this local rank where there is one; else one core and one thread of TensorFlow."""
    if gpus := tf.config.list_physical_devices("GPU"):
        own = gpus[local_rank % len(gpus)]
        tf.config.set_visible_devices(own, "GPU")
        tf.config.experimental.set_memory_growth(own, True)
        return
    devices.hold_cores({devices.core_of(local_rank, CORES)})
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)


def wait_for_all(ranks: MPI.Comm = WORLD) -> None:
    """A barrier that does not spin, unlike MPI's own."""
    request = ranks.Ibarrier()
    while not request.Test():
        time.sleep(0.02)


def dense() -> tf.keras.Model:
    """A network with many weights and little work for each of them, so that the all-reduce takes long."""
    hidden = [tf.keras.layers.Dense(1024, activation="relu") for _ in range(2)]
    inputs = [tf.keras.layers.Input(models.IMAGE_SHAPE), tf.keras.layers.Flatten()]
    return tf.keras.Sequential([*inputs, *hidden, tf.keras.layers.Dense(models.CLASSES)])


NETWORKS = {"dense": dense, "cnn": models.cnn}


class Training:
    """A network with its training step, alone or with the other ranks."""

    def __init__(self, options: argparse.Namespace, network: str) -> None:
        self.options = options
        tf.keras.utils.set_random_seed(11)
        self.model, self.optimizer = NETWORKS[network](), tf.keras.optimizers.SGD(0.01)
        self.optimizer.build(self.model.trainable_variables)
        self.loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        self.images = tf.random.uniform((options.batch, *models.IMAGE_SHAPE))
        self.labels = tf.random.uniform((options.batch,), 0, models.CLASSES, tf.int64)

    def step(self, with_all_reduce: bool) -> Callable[[tf.Tensor, tf.Tensor], tf.Tensor]:
        """A step as a graph; its trace holds what Horovod was initialised with."""

        def train(images: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
            with tf.GradientTape() as tape:
                loss = self.loss(labels, self.model(images, training=True))
            if with_all_reduce:
                tape = hvd.DistributedGradientTape(tape)
            gradients = tape.gradient(loss, self.model.trainable_variables)
            self.optimizer.apply_gradients(zip(gradients, self.model.trainable_variables, strict=True))
            return loss

        shapes = [tf.TensorSpec((None, *models.IMAGE_SHAPE)), tf.TensorSpec((None,), tf.int64)]
        return tf.function(train, input_signature=shapes, autograph=False)

    def block(self, ranks: MPI.Comm, step: Callable, batch: int, doing: int) -> tuple[float, float]:
        """Seconds per step, done by the first `doing` ranks, and this rank's share of a core; 0 and 1 if it is idle."""
        wait_for_all(ranks)  # those that are idle must not use a core meanwhile
        ranks.Barrier()
        if ranks.rank >= doing:
            return 0.0, 1.0
        images, labels = self.images[:batch], self.labels[:batch]
        start, cpu_start = time.perf_counter(), time.process_time()
        for _ in range(self.options.steps):
            loss = step(images, labels)
        loss.numpy()
        seconds = time.perf_counter() - start
        return seconds / self.options.steps, (time.process_time() - cpu_start) / seconds

    def seconds(self, ranks: MPI.Comm, *kinds: tuple[Callable, int, int]) -> list[list[float]]:
        """Seconds per step of the slowest rank, for each kind (step, batch, ranks that do it) and block.

        Kinds take turns, so that all meet the same disturbances. `core_share` is then what the poorest had of a core.
        """
        rounds = [[self.block(ranks, *kind) for kind in kinds] for _ in range(1 + self.options.blocks)]
        of_ranks = np.array(ranks.allgather(rounds[1:]))  # [rank, block, kind, seconds and share]
        self.core_share = float(np.min(np.median(of_ranks[..., 1], axis=1)))
        return np.max(of_ranks[..., 0], axis=0).T.tolist()


def all_reduce_seconds(array_bytes: int, repeats: int = 9) -> float:
    """The median of some all-reduces; the first does not count."""
    tensor, name = tf.ones(array_bytes // 4), f"bytes.{array_bytes}"
    seconds = timeit.repeat(lambda: hvd.allreduce(tensor, op=hvd.Sum, name=name).numpy(), number=1, repeat=1 + repeats)
    return float(np.median(seconds[1:]))


def turns(training: Training, ranks: MPI.Comm) -> list[list[float]]:
    """One rank alone, both without the all-reduce, both with it."""
    alone, together = training.step(with_all_reduce=False), training.step(with_all_reduce=True)
    batch = training.options.batch
    return training.seconds(ranks, (alone, batch, 1), (alone, batch, 2), (together, batch, 2))


def measure(trainings: dict[str, Training], ranks: MPI.Comm) -> dict:
    """Weak and strong scaling for these ranks, and all the rest if they are two."""
    hvd.init(comm=ranks)  # for these ranks alone
    training = trainings["dense"]
    batch, together = training.options.batch, training.step(with_all_reduce=True)
    kinds = [(together, batch, ranks.size), (together, batch // ranks.size, ranks.size)]
    weak, strong = training.seconds(ranks, *kinds)
    measured = {"weak": weak, "strong": strong, "core_share": training.core_share}
    measured["cores"] = ranks.allgather(devices.allowed_cores())
    if ranks.size == 2:
        measured["turns"] = {network: turns(trainings[network], ranks) for network in trainings}
        measured["all_reduce"] = [all_reduce_seconds(size) for size in ALL_REDUCE_BYTES]
        MPI.Pcontrol(2)  # forget what was counted, and count
        [measured["counted"]] = training.seconds(ranks, (together, batch, 2))
        MPI.Pcontrol(0)  # stop
    if ranks.size == 2 and len(CORES) > 1:
        own_core = devices.allowed_cores()
        places = {"a core each": own_core, "any core": CORES, "one core for both": CORES[:1]}
        for name, cores in {**places, "a core each, again": own_core}.items():
            devices.hold_cores(cores)
            [measured.setdefault("placements", {})[name]] = training.seconds(ranks, (together, batch, 2))
    hvd.shutdown()
    return measured


def main() -> None:
    """Measure every world size, the largest first; rank 0 writes the result."""
    options = parse()
    take_device(WORLD.Split_type(MPI.COMM_TYPE_SHARED).rank)
    trainings, sizes = {network: Training(options, network) for network in NETWORKS}, {}
    for size in options.sizes:
        wait_for_all()
        ranks = WORLD.Split(0 if WORLD.rank < size else MPI.UNDEFINED, WORLD.rank)
        if ranks != MPI.COMM_NULL:
            sizes[size] = measure(trainings, ranks)
            if WORLD.rank == 0:
                print(f"world size {size}: measured {', '.join(sizes[size])}", flush=True)
    MPI.Pcontrol(0)
    wait_for_all()
    if WORLD.rank == 0 and options.result:
        result = {"cores": len(CORES), "batch": options.batch, "steps": options.steps, "sizes": sizes}
        result |= {"all_reduce_bytes": ALL_REDUCE_BYTES}
        result["parameters"] = {name: training.model.count_params() for name, training in trainings.items()}
        options.result.write_text(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
