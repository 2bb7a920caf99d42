"""Train with Horovod and plain SGD, and record what the noise scale is estimated from.

On a laptop, with mpirun where there is a core or a GPU for each rank, and under Slurm
(`train.py` calls `record` too):

    distlab launch --with mpirun --workers 8 noise_scale.py
    mpirun -np 8 --oversubscribe -bind-to none python noise_scale.py
    srun --ntasks=8 --mpi=pmix python noise_scale.py

Data-parallel training has gradients of two batch sizes in every step, for nothing: each rank's
own before the all-reduce, and their mean after it. The only addition is one number to average:
the squared norm |g|². The network is the lecture's.
"""

from distlab import cluster_spec, data, large_batch, models  # first: selects tf-keras

import horovod.tensorflow as hvd
import tensorflow as tf

PER_REPLICA_BATCH, RATE, SEED = 8, 0.08, 0


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


def record(dataset: str, steps: int) -> dict:
    """Train; losses and both squared norms of the steps, the same on every rank."""
    images, labels = data.load(dataset).train
    tf.keras.utils.set_random_seed(SEED)
    model, batches = models.mlp(dropout=0.0), large_batch.global_batches
    hvd.broadcast_variables(model.variables, root_rank=0)
    rows = []
    for number in range(steps):
        batch = batches.numbers(number, len(images), PER_REPLICA_BATCH * hvd.size(), SEED)
        own = batches.share(batch, hvd.rank(), hvd.size())
        rows.append(step(model, tf.constant(images[own]), tf.constant(labels[own]), RATE))
    losses, small, big = tf.transpose(rows).numpy().tolist()
    sizes = {"small_batch": PER_REPLICA_BATCH, "big_batch": PER_REPLICA_BATCH * hvd.size()}
    return {**sizes, "losses": losses, "small_squares": small, "big_squares": big}


if __name__ == "__main__":
    cluster_spec.check_mpi_of_srun()
    hvd.init()
    result = record("digits", steps=120)
    if hvd.rank() == 0:
        print(result)
