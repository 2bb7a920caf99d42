"""Train with parameter servers: how stale is each gradient, and what if a process dies?

    distlab launch --workers 2 --parameter-servers 2 parameter_server.py

By hand, or under Slurm, as `minimal.py`. The runs begin at the same first weights:

    in_order     20 gradients, each when the one before is applied: serial training
    equal        all gradients at once; each worker takes the next one as soon as it is free
    slow         the same, but the last worker takes longer for each gradient
    lost_worker  as equal; the chief kills the last worker when half of the gradients are done
    lost_server  the same with the last parameter server
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
from tensorflow.python.data.experimental.ops import testing  # private: sleeps in a graph

RUNS = ("in_order", "equal", "slow", "lost_worker", "lost_server")
IN_ORDER, BATCH, LEARNING_RATE = 20, 32, 0.03
SECONDS, SLOW_SECONDS = 0.05, 0.2  # that a gradient sleeps: computing that needs no core


def serve(resolver: tf.distribute.cluster_resolver.ClusterResolver, folder: Path) -> None:
    """What workers and servers do: note their process number for the chief, then serve."""
    job, index = resolver.task_type, resolver.task_id
    (folder / f"{job}{index}").write_text(str(os.getpid()))
    # With fewer threads than servers + 1 it can block forever.
    threads = tf.compat.v1.ConfigProto(inter_op_parallelism_threads=4)
    tf.distribute.Server(resolver.cluster_spec(), job, index, config=threads).join()


def later(tensor: tf.Tensor, seconds: tf.Tensor) -> tf.Tensor:
    """The same tensor, after a sleep in the worker; Python's own would be in the chief."""
    microseconds = tf.cast(1e6 * seconds, tf.int64)
    sleeper = tf.data.Dataset.range(1).apply(testing.sleep(microseconds)).take(1)
    with tf.control_dependencies([sleeper.reduce(np.int64(0), lambda _, number: number)]):
        return tf.identity(tensor)


class Trainer:
    """The chief's part: the variables on the servers, the workers' step, and the runs."""

    def __init__(self, strategy: tf.distribute.Strategy, options: argparse.Namespace) -> None:
        self.options = options
        self.coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
        self.images, self.labels = (part[:1280] for part in data.load(options.dataset).train)
        tf.keras.utils.set_random_seed(8)
        whole = models.mlp(dropout=0.0).get_weights()
        with strategy.scope():
            self.model = models.mlp(dropout=0.0)
            self.version = tf.Variable(0, dtype=tf.int64, trainable=False)
        # The first kernel may lie on several servers.
        pieces = np.array_split(whole[0], len(self.model.weights) - 3)
        self.first_weights = [*pieces, *whole[1:]]

    @tf.function
    def step(self, images: tf.Tensor, labels: tf.Tensor, seconds: tf.Tensor) -> tf.Tensor:
        """One gradient, by the worker that runs this; gives worker, version and staleness."""
        worker = tf.distribute.coordinator.experimental_get_current_worker_index()
        weights = self.model.trainable_variables
        version_read = self.version.read_value()  # first: the weights have at least this one
        with tf.control_dependencies([version_read]), tf.GradientTape() as tape:
            logits = self.model(later(images, seconds[worker]), training=True)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
            loss = tf.reduce_mean(losses)
        pairs = zip(weights, tape.gradient(loss, weights), strict=True)
        updated = [weight.assign_sub(LEARNING_RATE * gradient) for weight, gradient in pairs]
        with tf.control_dependencies(updated):  # raise the version, get the old one, at once
            handle = self.version.handle
            version = tf.raw_ops.ResourceCountUpTo(resource=handle, limit=2**31, T=tf.int64)
        return tf.stack([tf.cast(worker, tf.int64), version, version - version_read])

    def schedule(self, number: int, seconds: np.ndarray) -> object:
        """Put a gradient into the queue, with its images; returns at once."""
        index = np.arange(number * BATCH, (number + 1) * BATCH) % len(self.images)
        parts = (self.images[index], self.labels[index], np.float32(seconds))
        return self.coordinator.schedule(self.step, args=[tf.constant(part) for part in parts])

    def kill(self, process: str, updates: int) -> None:
        """Wait for `updates` updates, then `kill -9` the process."""
        while int(self.version) < updates:
            time.sleep(0.05)
        os.kill(int((self.options.folder / process).read_text()), signal.SIGKILL)

    def run(self, name: str, workers: int, victim: str | None) -> dict:
        """One run: the worker and the staleness of each gradient, in the order of updates."""
        seconds = np.full(workers, 0.0 if name == "in_order" else SECONDS)
        if name == "slow":
            seconds[-1] = SLOW_SECONDS
        self.model.set_weights(self.first_weights)
        self.version.assign(0)
        start, scheduled = time.time(), []
        for number in range(IN_ORDER if name == "in_order" else self.options.gradients):
            share = min(1, (number + 1) / workers)  # else equal workers would read in step
            scheduled.append(self.schedule(number, share * seconds))
            if name == "in_order":
                self.coordinator.join()
        if victim:
            self.kill(victim, len(scheduled) // 2)
        self.coordinator.join()  # raises here what no other worker can repair
        rows = sorted(self.coordinator.fetch(scheduled), key=lambda row: row[1])
        worker, _, staleness = np.array(rows).T.tolist()
        times = {"seconds_per_gradient": seconds.tolist(), "seconds": time.time() - start}
        counts = {"scheduled": len(rows), "updates": int(self.version)}
        return {**times, **counts, "worker": worker, "staleness": staleness}


def main() -> None:
    """Find out from TF_CONFIG who this process is, and do its part."""
    parser = argparse.ArgumentParser(description="Measure the staleness of gradients.")
    parser.add_argument("--gradients", type=int, default=80, help="of all workers, in a run")
    parser.add_argument("--dataset", choices=data.NAMES, default="digits")
    parser.add_argument("--folder", type=Path, default=".", help="for weights.npz, processes")
    parser.add_argument("--result", type=Path, help="JSON file that the chief writes")
    options = parser.parse_args()
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if resolver.task_type in ("worker", "ps"):
        serve(resolver, options.folder)
    workers, servers = (resolver.cluster_spec().num_tasks(job) for job in ("worker", "ps"))
    cut = tf.distribute.experimental.partitioners.MinSizePartitioner(64 << 10, servers)
    strategy = tf.distribute.ParameterServerStrategy(resolver, variable_partitioner=cut)
    trainer = Trainer(strategy, options)
    variables = [[one.name, one.shape.as_list(), one.device] for one in trainer.model.weights]
    result = {"variables": variables, "runs": {}}
    victims = {"lost_worker": f"worker{workers - 1}", "lost_server": f"ps{servers - 1}"}
    for name in RUNS:
        try:
            result["runs"][name] = trainer.run(name, workers, victims.get(name))
        except tf.errors.UnavailableError as error:
            result["runs"][name] = {"error": type(error).__name__}
        print(f"{name} is done", flush=True)
        if name == "in_order":
            np.savez(options.folder / "weights.npz", *trainer.model.get_weights())
    if options.result:
        options.result.write_text(json.dumps(result) + "\n")
    os._exit(0)  # else a thread would wait for an hour for a lost worker to come back


if __name__ == "__main__":
    main()
