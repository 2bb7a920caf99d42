"""Train with Horovod and plain SGD, and record the squared norms that the gradient noise scale is estimated from.

On a laptop, with mpirun where there is a core or a GPU for each rank, and under Slurm:

    distlab launch --with mpirun --workers 8 noise_scale.py -- --result result.json
    mpirun -np 8 --oversubscribe -bind-to none python noise_scale.py --result result.json
    srun --ntasks=8 --mpi=pmix python noise_scale.py --result result.json

Data-parallel training has gradients of two batch sizes in every step, for nothing: each rank's own, of a small batch,
before the all-reduce, and their mean, of the global batch, after it. The only addition is one number to average: |g|².
A measurement of seconds; it writes no checkpoints. The network is the lecture's.
"""

import argparse
import json
from pathlib import Path

from distlab import cluster_spec, data, large_batch, models  # before TensorFlow: it selects tf-keras

import horovod.tensorflow as hvd
import tensorflow as tf


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Record what the gradient noise scale is estimated from.")
    parser.add_argument("--dataset", choices=data.NAMES, default="digits")
    parser.add_argument("--per-replica-batch", type=int, default=8, help="images a rank takes in a step (default: 8)")
    parser.add_argument("--learning-rate", type=float, default=0.08, help="of SGD (default: 0.08)")
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--result", type=Path, help="JSON file that rank 0 writes")
    cluster_spec.check_mpi_of_srun()
    return parser.parse_args(arguments)


def squared_norm(gradients: list[tf.Tensor]) -> tf.Tensor:
    """|g|², summed over all variables."""
    return tf.add_n([tf.reduce_sum(tf.square(gradient)) for gradient in gradients])


@tf.function(autograph=False)
def step(model: tf.Module, images: tf.Tensor, labels: tf.Tensor, rate: float) -> tf.Tensor:
    """One step of SGD on all ranks; the mean loss before it, and both squared norms."""
    with tf.GradientTape() as tape:
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, model(images))
        loss = tf.reduce_mean(losses)
    own = tape.gradient(loss, model.trainable_variables)
    mean_loss, small_square, *mean = hvd.grouped_allreduce([loss, squared_norm(own), *own])
    for variable, gradient in zip(model.trainable_variables, mean, strict=True):
        variable.assign_sub(rate * gradient)
    return tf.stack([mean_loss, small_square, squared_norm(mean)])


def record(options: argparse.Namespace) -> dict[str, list[float]]:
    """Train; the loss and both squared norms of every step, the same on every rank."""
    images, labels = data.load(options.dataset).train
    global_batch = options.per_replica_batch * hvd.size()
    tf.keras.utils.set_random_seed(options.seed)
    model = models.mlp(dropout=0.0)
    hvd.broadcast_variables(model.variables, root_rank=0)

    steps = []
    for number in range(options.steps):
        batch = large_batch.global_batches.numbers(number, len(images), global_batch, options.seed)
        own = large_batch.global_batches.share(batch, hvd.rank(), hvd.size())
        tensors = tf.constant(images[own]), tf.constant(labels[own])
        steps.append(step(model, *tensors, options.learning_rate).numpy().tolist())
    names = ("losses", "small_squares", "big_squares")
    return {name: [values[place] for values in steps] for place, name in enumerate(names)}


def main(arguments: list[str] | None = None) -> dict:
    """Record, and give the result; rank 0 writes it."""
    options = parse(arguments)
    hvd.init()
    batches = {"small_batch": options.per_replica_batch, "big_batch": options.per_replica_batch * hvd.size()}
    result = {"ranks": hvd.size(), **batches, **record(options)}
    if hvd.rank() == 0:
        print(f"noise scale: {options.steps} steps recorded, loss {result['losses'][-1]:.2f}", flush=True)
        if options.result:
            options.result.write_text(json.dumps(result) + "\n")
    return result


if __name__ == "__main__":
    main()
