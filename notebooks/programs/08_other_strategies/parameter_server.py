"""Train with parameter servers and asynchronous workers, and measure how stale each applied gradient was.

On a laptop, with one chief, two workers and two parameter servers:

    distlab launch --workers 2 --parameter-servers 2 parameter_server.py -- --result result.json

By hand, in one terminal per process; all get the same list of free addresses (the chief's, the workers', then those of
the parameter servers), and each its own rank:

    python parameter_server.py --rank 0 --servers 2 --addresses localhost:PORT0 localhost:PORT1 … localhost:PORT4

With mpirun or under Slurm, each process takes its rank (MPI itself is not used). Workers and servers wait
for work until somebody ends them; `--wait` does it, 10 seconds after the chief has ended:

    mpirun -np 5 bash -c 'python parameter_server.py --rank $OMPI_COMM_WORLD_RANK --servers 2 --addresses HOST0:PORT0 …'
    srun --ntasks=5 --wait=10 bash -c 'python parameter_server.py --rank $SLURM_PROCID --servers 2 --addresses …'

Up to three runs, one after the other in the same processes, each from the same first weights:

| run | what is scheduled |
|---|---|
| in_order | 20 gradients, each only when the one before has been applied: serial training on a cluster |
| equal | all gradients at once; every worker takes the next one as soon as it is free |
| slow | the same, but the last worker takes longer for each gradient |

The workers of a laptop share its cores. So that one does not take computing time from another, each gradient is
delayed by a sleep, which simulates a computation of that many seconds and needs no core.
"""

import argparse
import json
import os
import time
from pathlib import Path

import numpy as np

from distlab import cluster_spec, data, models  # before TensorFlow: it selects tf-keras

# isort: split
import tensorflow as tf
from tensorflow.python.data.experimental.ops import testing  # private: the only way to sleep inside a worker's graph

IN_ORDER = 20


def serve(resolver: tf.distribute.cluster_resolver.ClusterResolver) -> None:
    """What workers and parameter servers do: wait for work until somebody ends the process."""
    options = tf.compat.v1.ConfigProto(inter_op_parallelism_threads=4)  # fewer than servers + 1 can block forever
    task = {"job_name": resolver.task_type, "task_index": resolver.task_id}
    tf.distribute.Server(resolver.cluster_spec(), protocol="grpc", config=options, **task).join()


def later(tensor: tf.Tensor, seconds: tf.Tensor) -> tf.Tensor:
    """The same tensor, after a sleep in the process that computes this; Python's own sleep would be the chief's."""
    sleeper = tf.data.Dataset.range(1).apply(testing.sleep(tf.cast(1e6 * seconds, tf.int64))).take(1)
    slept = sleeper.reduce(np.int64(0), lambda _, number: number)
    with tf.control_dependencies([slept]):
        return tf.identity(tensor)


def mean_loss(labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
    """The cross-entropy, averaged over the images."""
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))


class Trainer:
    """The chief's part: the variables on the servers, the step that workers run, and the runs."""

    def __init__(self, strategy: tf.distribute.ParameterServerStrategy, options: argparse.Namespace) -> None:
        """Create the network, whose variables the strategy puts on the servers, and the counter of updates."""
        self.coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
        self.options = options
        self.images, self.labels = (part[: options.images] for part in data.load(options.dataset).train)
        tf.keras.utils.set_random_seed(8)
        whole = models.mlp(dropout=0.0).get_weights()
        with strategy.scope():
            self.model = models.mlp(dropout=0.0)
            self.version = tf.Variable(0, dtype=tf.int64, trainable=False)
        pieces = np.array_split(whole[0], len(self.model.weights) - 3)  # the first kernel may lie on several servers
        self.first_weights = [*pieces, *whole[1:]]

    @tf.function
    def step(self, images: tf.Tensor, labels: tf.Tensor, seconds: tf.Tensor) -> tf.Tensor:
        """One gradient, by the worker that runs this: read the weights, compute, update.

        The counter is read before the weights; after the update one atomic operation raises it and gives its old value.
        Its growth in between is the number of updates by others that these weights may lack: the staleness. Gives
        worker, version, staleness and time.
        """
        worker = tf.distribute.coordinator.experimental_get_current_worker_index()
        variables = self.model.trainable_variables
        version_read = self.version.read_value()
        with tf.control_dependencies([version_read]), tf.GradientTape() as tape:
            logits = self.model(later(images, seconds[worker]), training=True)  # the sleep delays images, not weights
            loss = mean_loss(labels, logits)
        pairs = zip(variables, tape.gradient(loss, variables), strict=True)
        updated = [variable.assign_sub(self.options.learning_rate * gradient) for variable, gradient in pairs]
        with tf.control_dependencies(updated):
            version_applied = tf.raw_ops.ResourceCountUpTo(resource=self.version.handle, limit=2**31, T=tf.int64)
        with tf.control_dependencies([version_applied]):
            now = tf.timestamp()
        numbers = (worker, version_applied, version_applied - version_read, now)
        return tf.stack([tf.cast(number, tf.float64) for number in numbers])

    @tf.function
    def loss(self, images: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        """The loss on these images, with the weights that the servers have now."""
        return mean_loss(labels, self.model(images))

    def batch(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """The images and labels of one gradient. They travel with the step; much data is read by the workers."""
        index = np.arange(number * self.options.batch, (number + 1) * self.options.batch) % len(self.images)
        return self.images[index], self.labels[index]

    def run(self, name: str, workers: int) -> dict:
        """One run: what happened to every gradient, and the loss over time as the chief saw it."""
        options, coordinator = self.options, self.coordinator
        seconds = [0.0 if name == "in_order" else options.seconds] * workers
        if name == "slow":
            seconds[-1] = options.slow_seconds
        self.model.set_weights(self.first_weights)
        self.version.assign(0)
        start, curve, scheduled = time.time(), [(0.0, 0, float(self.loss(self.images, self.labels)))], []
        for number in range(IN_ORDER if name == "in_order" else options.gradients):
            share = min(1, (number + 1) / workers)  # shorter first sleeps, or equal workers would read in step
            arguments = [tf.constant(part) for part in (*self.batch(number), np.float32(share) * np.float32(seconds))]
            scheduled.append(coordinator.schedule(self.step, args=arguments))
            if name == "in_order":
                coordinator.join()
        while not coordinator.done():
            time.sleep(0.2)
            curve.append((time.time() - start, int(self.version), float(self.loss(self.images, self.labels))))
        coordinator.join()  # raises here what failed in a worker

        rows = sorted(coordinator.fetch(scheduled), key=lambda row: row[1])
        worker, _, staleness, times = np.array(rows).T
        return {
            "seconds_per_gradient": seconds,
            "worker": worker.astype(int).tolist(),
            "staleness": staleness.astype(int).tolist(),
            "time": (times - start).tolist(),
            "updates": int(self.version),
            "curve": [*curve, (times.max() - start, int(self.version), float(self.loss(self.images, self.labels)))],
        }


def parse() -> argparse.Namespace:
    """The command line; the same for all processes, though only the chief looks at it."""
    parser = argparse.ArgumentParser(description="Train with parameter servers, and measure the staleness.")
    parser.add_argument("--runs", nargs="+", choices=["in_order", "equal", "slow"], default=["in_order", "equal"])
    parser.add_argument("--gradients", type=int, default=100, help="of all workers together, in a run (default: 100)")
    parser.add_argument("--seconds", type=float, default=0.05, help="sleep in each gradient (default: 0.05)")
    parser.add_argument("--slow-seconds", type=float, default=0.2, help="the last worker's in run slow (default: 0.2)")
    parser.add_argument("--learning-rate", type=float, default=0.03)
    parser.add_argument("--batch", type=int, default=32, help="images in a gradient (default: 32)")
    parser.add_argument("--images", type=int, default=1280, help="of the training images, the first (default: 1280)")
    parser.add_argument("--dataset", choices=data.NAMES, default="digits")
    parser.add_argument("--weights", type=Path, help=".npz file for the weights after the run in_order")
    parser.add_argument("--result", type=Path, help="JSON file that the chief writes")
    parser.add_argument("--rank", type=int, help="which of --addresses this process is, from 0; else TF_CONFIG says it")
    parser.add_argument("--addresses", nargs="+", metavar="HOST:PORT", help="of the chief, the workers and the servers")
    parser.add_argument("--servers", type=int, default=1, help="how many of --addresses are servers' (default: 1)")
    return parser.parse_args()


def tf_config(rank: int, addresses: list[str], servers: int) -> str:
    """The TF_CONFIG of one process: its place in the list of addresses says what it is."""
    workers = len(addresses) - servers
    cluster = {"chief": addresses[:1], "worker": addresses[1:workers], "ps": addresses[workers:]}
    tasks = [(job, index) for job, of_job in cluster.items() for index in range(len(of_job))]
    return cluster_spec.tf_config(cluster, *tasks[rank])


def main() -> None:
    """Find out from TF_CONFIG who this process is, and do its part."""
    options = parse()
    if options.addresses:
        os.environ["TF_CONFIG"] = tf_config(options.rank, options.addresses, options.servers)
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if resolver.task_type in ("worker", "ps"):
        serve(resolver)
    workers, servers = (resolver.cluster_spec().num_tasks(job) for job in ("worker", "ps"))
    # Variables of 64 KiB and more per piece are cut along their first axis, at most one piece for each server.
    partitioner = tf.distribute.experimental.partitioners.MinSizePartitioner(64 << 10, max_shards=servers)
    trainer = Trainer(tf.distribute.ParameterServerStrategy(resolver, variable_partitioner=partitioner), options)
    result = {"workers": workers, "parameter_servers": servers, "learning_rate": options.learning_rate}
    result |= {"runs": {}, "variables": []}
    for weight in trainer.model.trainable_variables:
        result["variables"].append({"name": weight.name, "shape": weight.shape.as_list(), "device": weight.device})
    for name in options.runs:
        run = result["runs"][name] = trainer.run(name, workers)
        print(f"{name}: {run['updates']} updates, mean staleness {np.mean(run['staleness']):.2f}", flush=True)
        if options.weights and name == "in_order":
            np.savez(options.weights, *trainer.model.get_weights())
    if options.result:
        options.result.write_text(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
