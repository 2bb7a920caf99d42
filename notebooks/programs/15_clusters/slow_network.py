"""Time the training step of a deep network with Horovod, sending gradients in several ways.

Between nodes that `srun` or `mpirun` has chosen, and on a laptop:

    srun --nodes=2 --ntasks-per-node=1 python slow_network.py --gloo-from-slurm
    mpirun -np 2 python slow_network.py --result times.json
    horovodrun --gloo -np 2 python slow_network.py

HOROVOD_FUSION_THRESHOLD=0 switches tensor fusion off for all ways. Two ranks measure every
way, more or fewer ranks the plain step. The network has many small layers, so the number of
messages counts as well as that of bytes. Keras and the DistributedGradientTape would take
longer to build their graphs than the steps to measure.
"""

import argparse
import json
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path

from distlab import metrics  # before TensorFlow: it selects tf-keras

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf
from train_horovod import begin

WAYS = ("plain", "fp16", "accumulate")
INPUTS, LAYERS, WIDTH, CLASSES = 784, 20, 100, 10  # the network, and its hidden layers
BATCH, BATCHES, SEED, LEARNING_RATE = 32, 4, 15, 0.01  # images of a rank; accumulated batches


def steps() -> tuple[dict[str, Callable[[], None]], list[int]]:
    """A step in each of the WAYS, one "alone", and the bytes of each gradient."""
    widths = [INPUTS, *[WIDTH] * LAYERS, CLASSES]
    layers = []
    for number, shape in enumerate(pairwise(widths)):
        deviation = (2 / shape[0]) ** 0.5
        kernel = tf.random.stateless_normal(shape, (SEED, number), stddev=deviation)
        layers.append((tf.Variable(kernel), tf.Variable(tf.zeros(shape[1]))))
    variables = [variable for layer in layers for variable in layer]
    images = tf.random.stateless_normal((BATCH, INPUTS), (hvd.rank(), 1))
    seed, most = (hvd.rank(), 2), CLASSES
    labels = tf.random.stateless_uniform((BATCH,), seed, 0, most, tf.int32)

    def gradients() -> list[tf.Tensor]:
        with tf.GradientTape() as tape:
            logits = images
            for number, (kernel, bias) in enumerate(layers):
                logits = (tf.nn.relu(logits) if number else logits) @ kernel + bias
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
            loss = tf.reduce_mean(losses)
        return tape.gradient(loss, variables)

    def averaged(values: list[tf.Tensor], by: type = hvd.Compression.none) -> list[tf.Tensor]:
        named = {f"gradient.{number}": value for number, value in enumerate(values)}
        return [hvd.allreduce(named[name], compression=by, name=name) for name in named]

    def apply(values: list[tf.Tensor]) -> None:
        for variable, value in zip(variables, values, strict=True):
            variable.assign_sub(LEARNING_RATE * value)

    def step(exchange: Callable) -> Callable[[], None]:
        # There is nothing to translate, which takes longer than to measure.
        return tf.function(lambda: apply(exchange(gradients())), autograph=False)

    in_fp16 = partial(averaged, by=hvd.Compression.fp16)
    sums = [tf.Variable(tf.zeros_like(variable)) for variable in variables]

    @tf.function(autograph=False)
    def add() -> None:
        for total, value in zip(sums, gradients(), strict=True):
            total.assign_add(value)

    @tf.function(autograph=False)
    def apply_sums() -> None:
        apply(averaged([total / BATCHES for total in sums]))
        for total in sums:
            total.assign(tf.zeros_like(total))

    def accumulate() -> None:
        for _ in range(BATCHES):
            add()
        apply_sums()

    sizes = [4 * int(np.prod(variable.shape)) for variable in variables]
    ways = {"alone": step(list), "plain": step(averaged), "fp16": step(in_fp16)}
    return {**ways, "accumulate": accumulate}, sizes


def seconds(work: Callable[[], object], repeats: int) -> float:
    """The median time of the work, after two repeats that do not count."""
    hvd.allreduce(tf.zeros(1), name="barrier")
    return metrics.median_seconds(work, repeats, warm_ups=2)


def main() -> None:
    """Measure; rank 0 writes and prints."""
    parser = argparse.ArgumentParser(description="Time ways of sending the gradients.")
    parser.add_argument("--ways", nargs="+", choices=WAYS, help="(two ranks: all; else plain)")
    parser.add_argument("--repeats", type=int, default=5, help="of each measurement")
    parser.add_argument("--gloo-from-slurm", action="store_true", help="by srun, without MPI")
    parser.add_argument("--result", type=Path, help="JSON file that rank 0 writes")
    options = parser.parse_args()
    begin(options)
    step, sizes = steps()
    ways = options.ways or (WAYS if hvd.size() == 2 else WAYS[:1])
    alone, *times = (seconds(step[way], options.repeats) for way in ("alone", *ways))
    result = {"ranks": hvd.size(), "gradients": len(sizes), "gradient_bytes": sum(sizes)}
    result |= {"batches": BATCHES, "alone": alone}
    result["ways"] = dict(zip(ways, times, strict=True))
    rate = hvd.size() * BATCH / times[0]
    result |= {"step_seconds": times[0], "images_per_second": rate}
    if hvd.rank() == 0:
        for way, median in result["ways"].items():
            print(f"{way}: {1e3 * median:.1f} ms per step", flush=True)
        if options.result:
            options.result.write_text(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
