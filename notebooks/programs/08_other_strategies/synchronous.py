"""Train with synchronous workers, one of them slow on request: like `parameter_server.py`, but all wait.

On a laptop, with two workers:

    distlab launch --workers 2 synchronous.py -- --result result.json

By hand, in one terminal per worker; all get the same list of free addresses, and each its own rank:

    python synchronous.py --rank 0 --addresses localhost:PORT0 localhost:PORT1
    python synchronous.py --rank 1 --addresses localhost:PORT0 localhost:PORT1

With mpirun or under Slurm, each process takes its rank (MPI itself is not used):

    mpirun -np 2 bash -c 'python synchronous.py --rank $OMPI_COMM_WORLD_RANK --addresses HOST0:PORT0 HOST1:PORT1'
    srun --ntasks=2 bash -c 'python synchronous.py --rank $SLURM_PROCID --addresses HOST0:PORT0 HOST1:PORT1'

Up to two runs, one after the other in the same processes, each from the same first weights:

| run | workers |
|---|---|
| equal | every worker sleeps equally long for each gradient |
| slow | the last worker sleeps longer |

The sleep simulates a computation of that many seconds. It needs no core, so workers do not slow each other down.
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

EVALUATE_EVERY = 5


class Trainer:
    """One worker of the strategy: the network, the step, and the runs."""

    def __init__(self, strategy: tf.distribute.MultiWorkerMirroredStrategy, options: argparse.Namespace) -> None:
        """Create the network; every worker has a copy of each variable."""
        self.strategy, self.options = strategy, options
        self.worker, self.workers = strategy.cluster_resolver.task_id, strategy.num_replicas_in_sync
        self.images, self.labels = (part[: options.images] for part in data.load(options.dataset).train)
        tf.keras.utils.set_random_seed(8)
        with strategy.scope():
            self.model = models.mlp(dropout=0.0)
            self.optimizer = tf.keras.optimizers.SGD(options.learning_rate)
            self.optimizer.build(self.model.trainable_variables)
        self.first_weights = self.model.get_weights()

    @tf.function
    def step(self, images: tf.Tensor, labels: tf.Tensor) -> None:
        """One gradient of each worker; their sum is applied: each counts as in `parameter_server.py`."""

        def replica(images: tf.Tensor, labels: tf.Tensor) -> None:
            variables = self.model.trainable_variables
            with tf.GradientTape() as tape:
                loss = mean_loss(labels, self.model(images, training=True))
            self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))

        self.strategy.run(replica, args=(images, labels))

    @tf.function
    def loss(self, images: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        """The loss on these images, with the weights as they are."""
        return mean_loss(labels, self.model(images))

    def batch(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """The images and labels of one gradient."""
        index = np.arange(number * self.options.batch, (number + 1) * self.options.batch) % len(self.images)
        return self.images[index], self.labels[index]

    def run(self, name: str) -> dict:
        """One run: when each step was done, how long this worker slept, and the loss over time."""
        options = self.options
        seconds = [options.seconds] * self.workers
        if name == "slow":
            seconds[-1] = options.slow_seconds
        steps = options.gradients // self.workers
        self.step(*map(tf.constant, self.batch(0)))  # traced before the clock starts
        self.model.set_weights(self.first_weights)
        curve, times = [(0.0, 0, float(self.loss(self.images, self.labels)))], []
        start = time.time()
        for step in range(steps):
            time.sleep(seconds[self.worker])
            self.step(*map(tf.constant, self.batch(step * self.workers + self.worker)))
            times.append(time.time() - start)
            if (step + 1) % EVALUATE_EVERY == 0 or step + 1 == steps:
                loss = float(self.loss(self.images, self.labels))
                curve.append((time.time() - start, (step + 1) * self.workers, loss))
        return {"seconds_per_gradient": seconds, "steps": steps, "time": times, "curve": curve}


def mean_loss(labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
    """The cross-entropy, averaged over the images."""
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))


def parse() -> argparse.Namespace:
    """The command line; the same for all workers."""
    parser = argparse.ArgumentParser(description="Train synchronously with one slow worker.")
    parser.add_argument("--runs", nargs="+", choices=["equal", "slow"], default=["equal", "slow"])
    parser.add_argument("--gradients", type=int, default=100, help="of all workers together, in a run (default: 100)")
    parser.add_argument("--seconds", type=float, default=0.05, help="sleep for each gradient (default: 0.05)")
    parser.add_argument("--slow-seconds", type=float, default=0.2, help="the last worker's in run slow (default: 0.2)")
    parser.add_argument("--learning-rate", type=float, default=0.03)
    parser.add_argument("--batch", type=int, default=32, help="images in a gradient (default: 32)")
    parser.add_argument("--images", type=int, default=1280, help="of the training images, the first (default: 1280)")
    parser.add_argument("--dataset", choices=data.NAMES, default="digits")
    parser.add_argument("--result", type=Path, help="JSON file that worker 0 writes")
    parser.add_argument("--rank", type=int, help="which of --addresses this process is, from 0; else TF_CONFIG says it")
    parser.add_argument("--addresses", nargs="+", metavar="HOST:PORT", help="of all workers")
    return parser.parse_args()


def main() -> None:
    """Train, and let worker 0 write what it saw."""
    options = parse()
    if options.addresses:
        os.environ["TF_CONFIG"] = cluster_spec.tf_config({"worker": options.addresses}, "worker", options.rank)
    cluster_spec.check(os.environ.get("TF_CONFIG"))
    with cluster_spec.interruptible():
        strategy = tf.distribute.MultiWorkerMirroredStrategy()
    trainer = Trainer(strategy, options)
    result = {"workers": trainer.workers, "learning_rate": options.learning_rate, "runs": {}}
    for name in options.runs:
        run = result["runs"][name] = trainer.run(name)
        print(f"{name}: {run['steps']} steps in {run['time'][-1]:.1f} s", flush=True)
    if options.result and trainer.worker == 0:
        options.result.write_text(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
