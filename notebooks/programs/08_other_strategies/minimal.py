"""The smallest parameter-server program: chief, workers and servers all run this file.

    distlab launch --workers 2 --parameter-servers 1 minimal.py

By hand, one terminal per process (under Slurm one task, `srun --ntasks=4`). Each has its own task in TF_CONFIG; the
chief's is {"type": "chief", "index": 0}, and all have the same cluster:

    {"chief": ["localhost:1111"], "worker": ["localhost:2222", "localhost:3333"], "ps": ["localhost:4444"]}
"""

from distlab import data, models  # before TensorFlow: it selects tf-keras

# isort: split
import tensorflow as tf

resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
if resolver.task_type in ("worker", "ps"):  # these serve until somebody ends them
    threads = tf.compat.v1.ConfigProto(inter_op_parallelism_threads=4)  # with fewer than servers + 1 it can deadlock
    task = {"job_name": resolver.task_type, "task_index": resolver.task_id}
    tf.distribute.Server(resolver.cluster_spec(), config=threads, **task).join()

strategy = tf.distribute.ParameterServerStrategy(resolver)
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
with strategy.scope():  # variables live on the servers
    model = models.mlp(dropout=0.0)
    optimizer = tf.keras.optimizers.SGD(0.05)


images, labels = data.load("digits").train


def batches() -> tf.data.Dataset:
    """What each worker reads: every image, in its own order."""
    return tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(len(images)).repeat().batch(32)


def replica_step(images: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    """One gradient: read the weights from the servers, compute, update them there."""
    with tf.GradientTape() as tape:
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, model(images, training=True))
        loss = tf.reduce_mean(losses)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return loss


@tf.function
def step(iterator: tf.data.Iterator) -> tf.Tensor:
    """What the chief schedules and the next free worker runs."""
    return strategy.run(replica_step, args=next(iterator))


iterator = iter(coordinator.create_per_worker_dataset(batches))
losses = [coordinator.schedule(step, args=(iterator,)) for _ in range(200)]  # returns at once
coordinator.join()  # waits until all steps are done
print(f"loss of the first step {losses[0].fetch():.2f}, of the last {losses[-1].fetch():.2f}")
