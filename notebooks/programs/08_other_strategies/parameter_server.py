"""Train with parameter servers: how stale is each gradient, and what happens when a process dies?

    distlab launch --workers 2 --parameter-servers 2 parameter_server.py -- --runs equal slow

By hand, or under Slurm, as `minimal.py`. The runs, one after the other, from the same first weights:

    in_order     20 gradients, each only when the one before has been applied: serial training on a cluster
    equal        all gradients at once; every worker takes the next one as soon as it is free
    slow         the same, but the last worker takes longer for each gradient
    lost_worker  as equal; the chief kills the last worker (`kill -9`) when half of the gradients are applied
    lost_server  the same, but it kills the last parameter server; name this run last
"""

import argparse
import json
import os
import signal
import time
from pathlib import Path

from distlab import data, models  # before TensorFlow: it selects tf-keras

import numpy as np
import tensorflow as tf
from tensorflow.python.data.experimental.ops import testing  # private: the only way to sleep inside a worker's graph

# Each gradient is delayed by a sleep of so many seconds, which simulates computing and needs no core.
IN_ORDER, BATCH, LEARNING_RATE, SECONDS, SLOW_SECONDS = 20, 32, 0.03, 0.05, 0.2


def serve(resolver: tf.distribute.cluster_resolver.ClusterResolver, folder: Path) -> None:
    """What workers and servers do: note their process number for the chief, then wait for work."""
    (folder / f"{resolver.task_type}{resolver.task_id}").write_text(str(os.getpid()))
    options = tf.compat.v1.ConfigProto(inter_op_parallelism_threads=4)  # fewer than servers + 1 can block forever
    tf.distribute.Server(resolver.cluster_spec(), resolver.task_type, resolver.task_id, config=options).join()


def later(tensor: tf.Tensor, seconds: tf.Tensor) -> tf.Tensor:
    """The same tensor, after a sleep in the process that computes this; Python's own sleep would be the chief's."""
    sleeper = tf.data.Dataset.range(1).apply(testing.sleep(tf.cast(1e6 * seconds, tf.int64))).take(1)
    with tf.control_dependencies([sleeper.reduce(np.int64(0), lambda _, number: number)]):
        return tf.identity(tensor)


class Trainer:
    """The chief's part: the variables on the servers, the step that workers run, and the runs."""

    def __init__(self, strategy: tf.distribute.ParameterServerStrategy, options: argparse.Namespace) -> None:
        """Create the network, whose variables the strategy puts on the servers, and the counter of updates."""
        self.options, self.coordinator = options, tf.distribute.coordinator.ClusterCoordinator(strategy)
        self.images, self.labels = (part[:1280] for part in data.load(options.dataset).train)
        tf.keras.utils.set_random_seed(8)
        whole = models.mlp(dropout=0.0).get_weights()
        with strategy.scope():
            self.model = models.mlp(dropout=0.0)
            self.version = tf.Variable(0, dtype=tf.int64, trainable=False)
        pieces = np.array_split(whole[0], len(self.model.weights) - 3)  # the first kernel may lie on several servers
        self.first_weights = [*pieces, *whole[1:]]

    @tf.function
    def step(self, images: tf.Tensor, labels: tf.Tensor, seconds: tf.Tensor) -> tf.Tensor:
        """One gradient, by the worker that runs this; gives worker, version and staleness."""
        worker = tf.distribute.coordinator.experimental_get_current_worker_index()
        weights = self.model.trainable_variables
        version_read = self.version.read_value()  # before the weights: they have at least this one
        with tf.control_dependencies([version_read]), tf.GradientTape() as tape:
            outputs = self.model(later(images, seconds[worker]), training=True)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, outputs))
        pairs = zip(weights, tape.gradient(loss, weights), strict=True)
        updated = [weight.assign_sub(LEARNING_RATE * gradient) for weight, gradient in pairs]
        with tf.control_dependencies(updated):  # raise the version, get the old one, at once
            handle = self.version.handle
            version = tf.raw_ops.ResourceCountUpTo(resource=handle, limit=2**31, T=tf.int64)
        return tf.stack([tf.cast(worker, tf.int64), version, version - version_read])

    def schedule(self, number: int, seconds: np.ndarray) -> tf.distribute.coordinator.RemoteValue:
        """Put a gradient into the queue; its images travel with it (much data is read by the workers)."""
        index = np.arange(number * BATCH, (number + 1) * BATCH) % len(self.images)
        arguments = [tf.constant(part) for part in (self.images[index], self.labels[index], np.float32(seconds))]
        return self.coordinator.schedule(self.step, args=arguments)  # returns at once

    def kill(self, process: str, updates: int) -> None:
        """Wait for `updates` updates, then `kill -9` the process."""
        while int(self.version) < updates:
            time.sleep(0.05)
        os.kill(int((self.options.folder / process).read_text()), signal.SIGKILL)

    def run(self, name: str, workers: int, victim: str | None) -> dict:
        """One run: which worker did each gradient, and how stale it was, in the order of the updates."""
        seconds = np.full(workers, 0.0 if name == "in_order" else SECONDS)
        if name == "slow":
            seconds[-1] = SLOW_SECONDS
        self.model.set_weights(self.first_weights)
        self.version.assign(0)
        start, scheduled = time.time(), []
        for number in range(IN_ORDER if name == "in_order" else self.options.gradients):
            share = min(1, (number + 1) / workers)  # shorter first sleeps, or equal workers would read in step
            scheduled.append(self.schedule(number, share * seconds))
            if name == "in_order":
                self.coordinator.join()
        if victim:
            self.kill(victim, len(scheduled) // 2)
        self.coordinator.join()  # waits for all; raises here what no other worker can repair
        rows = sorted(self.coordinator.fetch(scheduled), key=lambda row: row[1])
        worker, _, staleness = np.array(rows).T.tolist()
        times = {"seconds_per_gradient": seconds.tolist(), "seconds": time.time() - start}
        return times | {"worker": worker, "staleness": staleness, "scheduled": len(rows), "updates": int(self.version)}


def parse() -> argparse.Namespace:
    """The command line; the same for all processes."""
    parser = argparse.ArgumentParser(description="Train with parameter servers, and measure the staleness.")
    runs = ("in_order", "equal", "slow", "lost_worker", "lost_server")
    parser.add_argument("--runs", nargs="+", choices=runs, default=["in_order", "equal"])
    parser.add_argument("--gradients", type=int, default=80, help="of all workers together, in a run (default: 80)")
    parser.add_argument("--dataset", choices=data.NAMES, default="digits")
    parser.add_argument("--folder", type=Path, default=Path(), help="for process numbers and weights.npz (default: .)")
    parser.add_argument("--result", type=Path, help="JSON file that the chief writes")
    return parser.parse_args()


def main() -> None:
    """Find out from TF_CONFIG who this process is, and do its part."""
    options = parse()
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if resolver.task_type in ("worker", "ps"):
        serve(resolver, options.folder)
    workers, servers = (resolver.cluster_spec().num_tasks(job) for job in ("worker", "ps"))
    partitioner = tf.distribute.experimental.partitioners.MinSizePartitioner(64 << 10, servers)  # bytes, pieces
    trainer = Trainer(tf.distribute.ParameterServerStrategy(resolver, variable_partitioner=partitioner), options)
    weights = trainer.model.trainable_variables
    result = {"variables": [[each.name, each.shape.as_list(), each.device] for each in weights], "runs": {}}
    victims = {"lost_worker": f"worker{workers - 1}", "lost_server": f"ps{servers - 1}"}
    for name in options.runs:
        try:
            result["runs"][name] = trainer.run(name, workers, victims.get(name))
        except tf.errors.UnavailableError as error:
            result["runs"][name] = {"error": type(error).__name__}
        print(f"{name} is done", flush=True)
        if name == "in_order":
            np.savez(options.folder / "weights.npz", *trainer.model.get_weights())
    if options.result:
        options.result.write_text(json.dumps(result) + "\n")
    if victims.keys() & result["runs"].keys():
        os._exit(0)  # a thread of the coordinator would wait an hour for the lost worker to come back


if __name__ == "__main__":
    main()
