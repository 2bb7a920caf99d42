"""Time the training step of a deep network with Horovod, in several ways of sending its gradients.

Between nodes that `srun` or `mpirun` has chosen:

    srun --nodes=2 --ntasks-per-node=1 python slow_network.py --gloo-from-slurm --result times.json
    mpirun -np 2 python slow_network.py --result times.json

On a laptop: `horovodrun --gloo -np 2 python slow_network.py`. HOROVOD_FUSION_THRESHOLD=0 switches tensor fusion off for
all ways. The network has many small layers, so that the number of messages counts as well as the number of bytes.
"""

import argparse
import json
import time
from collections.abc import Callable

import numpy as np

from distlab import cluster_spec, valid  # before TensorFlow: distlab selects tf-keras

# isort: split
import horovod.tensorflow as hvd
import tensorflow as tf

WAYS = ("plain", "fp16", "accumulate")
INPUTS, CLASSES = 784, 10
SMALL_BYTES = 1024

mean_loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Time training steps with several ways of sending the gradients.")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS, help="(default: all)")
    parser.add_argument("--layers", type=valid.count, default=20, help="hidden layers (default: 20)")
    parser.add_argument("--width", type=valid.count, default=100, help="units of each (default: 100)")
    parser.add_argument("--batch", type=valid.count, default=32, help="images per rank (default: 32)")
    parser.add_argument("--batches", type=valid.count, default=4, help="of a step that accumulates (default: 4)")
    parser.add_argument("--repeats", type=valid.count, default=5, help="of each measurement (default: 5)")
    parser.add_argument("--gloo-from-slurm", action="store_true", help="srun has started the ranks, without MPI")
    parser.add_argument("--result", type=valid.output, help="JSON file that rank 0 writes")
    return parser.parse_args()


def training_step(options: argparse.Namespace) -> tuple[Callable[[str], None], Callable[[], None], list[int]]:
    """A step in one of the WAYS, one without communication, and the bytes of each gradient."""
    tf.keras.utils.set_random_seed(15)
    layers = [tf.keras.layers.Dense(options.width, activation="relu") for _ in range(options.layers)]
    model = tf.keras.Sequential([tf.keras.layers.Input((INPUTS,)), *layers, tf.keras.layers.Dense(CLASSES)])
    optimizer = tf.keras.optimizers.SGD(0.01)
    images = tf.random.stateless_normal((options.batch, INPUTS), (hvd.rank(), 1))
    labels = tf.random.stateless_uniform((options.batch,), (hvd.rank(), 2), 0, CLASSES, tf.int32)

    def gradients(tape_of: Callable[[tf.GradientTape], tf.GradientTape]) -> list[tf.Tensor]:
        with tf.GradientTape() as tape:
            loss = mean_loss(labels, model(images, training=True))
        return tape_of(tape).gradient(loss, model.trainable_variables)

    def averaged(compression: type) -> Callable[[tf.GradientTape], tf.GradientTape]:
        return lambda tape: hvd.DistributedGradientTape(tape, compression=compression)

    def apply(values: list[tf.Tensor]) -> None:
        optimizer.apply_gradients(zip(values, model.trainable_variables, strict=True))

    @tf.function(autograph=False)  # nothing to translate, which takes longer than to measure
    def alone() -> None:
        apply(gradients(lambda tape: tape))

    @tf.function(autograph=False)
    def plain() -> None:
        apply(gradients(averaged(hvd.Compression.none)))

    @tf.function(autograph=False)
    def fp16() -> None:
        apply(gradients(averaged(hvd.Compression.fp16)))

    sums = [tf.Variable(tf.zeros_like(variable)) for variable in model.trainable_variables]

    @tf.function(autograph=False)
    def add() -> None:
        for total, value in zip(sums, gradients(lambda tape: tape), strict=True):
            total.assign_add(value)

    @tf.function(autograph=False)
    def apply_sums() -> None:
        apply([hvd.allreduce(total / options.batches, name=f"sum.{i}") for i, total in enumerate(sums)])
        for total in sums:
            total.assign(tf.zeros_like(total))

    def accumulate() -> None:
        for _ in range(options.batches):
            add()
        apply_sums()

    ways = {"plain": plain, "fp16": fp16, "accumulate": accumulate}
    sizes = [4 * int(np.prod(variable.shape)) for variable in model.trainable_variables]
    return lambda way: ways[way](), alone, sizes


def seconds(work: Callable[[], object], repeats: int) -> float:
    """The median time of the work, after two repeats that do not count."""
    times = []
    for _ in range(repeats + 2):
        hvd.allreduce(tf.zeros(1), name="barrier")
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return float(np.median(times[2:]))


def main() -> None:
    """Measure; rank 0 writes and prints."""
    options = parse()
    if options.gloo_from_slurm:
        cluster_spec.gloo_from_slurm()
    hvd.init()
    step, alone, sizes = training_step(options)
    result = {"ranks": hvd.size(), "gradients": len(sizes), "gradient_bytes": sum(sizes), "batch": options.batch}
    result |= {"batches": options.batches, "alone": seconds(alone, options.repeats)}
    result["ways"] = {way: seconds(lambda way=way: step(way), options.repeats) for way in options.ways}
    # After the steps, when TCP has found the speed of the link.
    for name, array_bytes in (("small", SMALL_BYTES), ("whole", sum(sizes))):
        array = tf.ones(array_bytes // 4)
        all_reduce = tf.function(lambda array=array, name=name: hvd.allreduce(array, name=name), autograph=False)
        result[f"{name}_all_reduce"] = {"bytes": array_bytes, "seconds": seconds(all_reduce, options.repeats)}
    first = result["ways"][options.ways[0]]
    result |= {"step_seconds": first, "images_per_second": hvd.size() * options.batch / first}
    if hvd.rank() == 0:
        for way, median in result["ways"].items():
            print(f"{way}: {1e3 * median:.1f} ms per step", flush=True)
        if options.result:
            options.result.write_text(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
