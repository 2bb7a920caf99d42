"""Feed samples that do not divide evenly to several workers: who sees which, and which average is then right.

On a laptop, three workers by the launcher, or one process alone:

    distlab launch --workers 3 uneven_data.py -- --result uneven.json
    python uneven_data.py --result uneven.json

By hand one terminal per worker, under Slurm one task (`srun --ntasks=3 bash job.sh`, I=$SLURM_PROCID); each names all
free addresses in C='{"worker": ["HOST0:PORT0", "HOST1:PORT1", "HOST2:PORT2"]}' and its own index in I:

    TF_CONFIG='{"cluster": '$C', "task": {"type": "worker", "index": '$I'}}' python uneven_data.py --result uneven.json

| feeding | the global batches of n samples |
|---|---|
| sharded | `.batch(n)`; the last batch is smaller |
| drop_remainder | `.batch(n, drop_remainder=True)` |
| repeat | `.repeat().batch(n)`, and as many steps as it takes to reach every sample |
| not_sharded | `.batch(n)` with `AutoShardPolicy.OFF` |
| padded | filled up to whole batches with samples of weight 0 |

The metrics are those of a fixed linear model; the samples are sorted by class. Worker 0 writes the result. With
`--own-loop` the workers iterate over their own parts, with different numbers of steps, and the job hangs.
"""

import argparse
import json
import math
from contextlib import suppress
from pathlib import Path

import numpy as np

import distlab.cluster_spec  # isort: skip  it selects tf-keras, and so must come before TensorFlow
import distlab.data  # isort: skip

import tensorflow as tf

FEEDINGS = ("sharded", "drop_remainder", "repeat", "not_sharded", "padded")
PADDING = -1
LEARNING_RATE = 0.01


def load(name: str, samples: int) -> list[np.ndarray]:
    """Images as rows and labels, sorted by label; kernel and bias of a model that looks for the nearest class mean."""
    (images, labels), (test_images, test_labels) = distlab.data.load(name)
    order = np.argsort(labels[:samples], kind="stable")
    means = np.stack([test_images[test_labels == digit].reshape(-1, 784).mean(axis=0) for digit in range(10)])
    return [images[order].reshape(-1, 784), labels[order], 0.2 * means.T, -0.1 * np.sum(means**2, axis=1)]


def global_batches(feeding: str, samples: int, size: int) -> tf.data.Dataset:
    """Batches of sample numbers; PADDING marks a sample of weight 0."""
    numbers = tf.data.Dataset.range(samples).repeat(None if feeding == "repeat" else 1)
    if feeding == "padded":
        numbers = numbers.concatenate(tf.data.Dataset.from_tensors(np.int64(PADDING)).repeat(-samples % size))
    batches = numbers.batch(size, drop_remainder=feeding == "drop_remainder").take(math.ceil(samples / size))
    options, policies = tf.data.Options(), tf.data.experimental.AutoShardPolicy
    options.experimental_distribute.auto_shard_policy = policies.OFF if feeding == "not_sharded" else policies.DATA
    return batches.with_options(options)


class Job:
    """This process's part of the job: its strategy, the samples and the fixed model."""

    def __init__(self, name: str, samples: int) -> None:
        with distlab.cluster_spec.interruptible():
            self.strategy = tf.distribute.MultiWorkerMirroredStrategy()
        self.index = self.strategy.cluster_resolver.task_id or 0
        self.workers = max(1, len(self.strategy.cluster_resolver.cluster_spec().as_dict().get("worker", [])))
        self.samples, self.arrays = samples, load(name, samples)
        self.images, self.labels, self.kernel, self.bias = map(tf.constant, self.arrays)
        with self.strategy.scope():
            self.model = tf.keras.Sequential([tf.keras.layers.Input(784), tf.keras.layers.Dense(10)])
            loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
            self.model.compile(tf.keras.optimizers.SGD(LEARNING_RATE), loss, weighted_metrics=["accuracy"])

    def _sums(self, numbers: tf.Tensor) -> tf.Tensor:
        """Of one replica's batch: the sum of the hits, the sum of the losses, and the number of samples."""
        weights, numbers = tf.cast(numbers != PADDING, tf.float32), tf.maximum(numbers, 0)
        logits, labels = tf.gather(self.images, numbers) @ self.kernel + self.bias, tf.gather(self.labels, numbers)
        hits = tf.cast(tf.argmax(logits, axis=1) == labels, tf.float32)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        return tf.stack([tf.reduce_sum(hits * weights), tf.reduce_sum(losses * weights), tf.reduce_sum(weights)])

    @tf.function(reduce_retracing=True, autograph=False)
    def step(self, numbers: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """The sums on this worker; the sums over all workers; the mean of all workers' means."""
        sums = self.strategy.run(self._sums, args=(numbers,))
        return sums, self.strategy.reduce("SUM", sums, axis=None), self.mean_of_means(sums)

    @tf.function(reduce_retracing=True, autograph=False)
    def next_step(self, batches: tf.distribute.DistributedIterator) -> tuple:
        """The next samples of this worker, and their `step`; OutOfRangeError when no worker has samples left."""
        numbers = next(batches)
        return numbers, *self.step(numbers)

    @tf.function(autograph=False)
    def mean_of_means(self, sums: tf.Tensor) -> tf.Tensor:
        """What is wrong: every worker's mean counts the same. Without samples it is 0 / 0, which is not a number."""
        means = self.strategy.run(lambda sums: sums[:2] / sums[2], args=(sums,))
        return self.strategy.reduce("MEAN", means, axis=None)

    def feed(self, feeding: str, size: int) -> tuple[dict[str, object], np.ndarray]:
        """One epoch: three averages of the metrics, and a row [worker, step, sample] for each sample seen here."""
        own, total, means, seen = tf.zeros(3), tf.zeros(3), [], []
        batches = iter(self.strategy.experimental_distribute_dataset(global_batches(feeding, self.samples, size)))
        with suppress(tf.errors.OutOfRangeError):
            while True:
                numbers, sums, sums_of_all, mean = self.next_step(batches)
                parts = [part.numpy() for part in self.strategy.experimental_local_results(numbers)]
                seen += [(self.index, len(means), number) for part in parts for number in part if number != PADDING]
                own, total = own + sum(self.strategy.experimental_local_results(sums)), total + sums_of_all
                means.append(mean.numpy())
        averages = {"mean_of_workers": self.mean_of_means(own), "mean_of_batches": np.mean(means, axis=0)}
        averages["weighted"] = total[:2] / total[2]
        result = {"feeding": feeding, "global_batch": size, "steps": len(means)}
        return result | {name: named(values) for name, values in averages.items()}, np.array(seen).reshape(-1, 3)

    def feed_all(self, sizes: list[int]) -> list[dict[str, object]]:
        """Every feeding with every size; the workers gather what they saw."""
        fed = [self.feed(feeding, size) for size in sizes for feeding in FEEDINGS]
        results = [result for result, _ in fed]
        seen = np.concatenate([np.insert(rows, 0, number, axis=1) for number, (_, rows) in enumerate(fed)])
        seen = self.strategy.gather(tf.constant(seen, tf.int32), axis=0).numpy()
        for number, result in enumerate(results):
            rows = seen[seen[:, 0] == number, 1:]
            by_worker = [rows[rows[:, 0] == worker] for worker in range(self.workers)]
            counts = np.bincount(rows[:, 2], minlength=self.samples)
            result["samples"] = [rows[:, 2].tolist() for rows in by_worker]
            result["batch_sizes"] = [np.bincount(rows[:, 1], minlength=result["steps"]).tolist() for rows in by_worker]
            result["lost"] = np.flatnonzero(counts == 0).tolist()
            result["more_than_once"] = np.flatnonzero(counts > 1).tolist()
        return results

    def keras(self, size: int) -> dict[str, object]:
        """`evaluate`, and how far the weights are from one process's after an epoch of `fit`, plain and weighted."""

        def with_weights(numbers: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
            """Keras divides by the size of the batch, padding included: the real samples weigh more in turn."""
            weights, numbers = tf.cast(numbers != PADDING, tf.float32), tf.maximum(numbers, 0)
            weights *= tf.cast(tf.size(numbers), tf.float32) / tf.reduce_sum(weights)
            return tf.gather(self.images, numbers), tf.gather(self.labels, numbers), weights

        batches = global_batches("sharded", self.samples, size).map(with_weights)
        padded = global_batches("padded", self.samples, size).map(with_weights)
        start, expected, off = [self.kernel.numpy(), self.bias.numpy()], one_process_weights(*self.arrays, size), {}
        self.model.set_weights(start)
        evaluated = self.model.evaluate(batches, verbose=0)
        for name, dataset in {"fit": batches, "weighted_fit": padded}.items():
            self.model.set_weights(start)
            self.model.fit(dataset, epochs=1, verbose=0)
            pairs = zip(self.model.get_weights(), expected, strict=True)
            off[name] = max(float(np.abs(trained - alone).max()) for trained, alone in pairs)
        return {"global_batch": size, "evaluate": named(evaluated[::-1]), "weights_off": off}

    def own_loop(self, size: int) -> None:
        """Iterate without asking the others: the worker with one step more waits in it for peers that have ended."""
        for step, numbers in enumerate(tf.data.Dataset.range(self.samples).shard(self.workers, self.index).batch(size)):
            print(f"step {step + 1}: {len(numbers)} samples", flush=True)
            self.step(numbers)
        print("the epoch is over", flush=True)


def named(values: np.ndarray) -> dict[str, float | None]:
    """Accuracy and loss; None for what is not a number."""
    accuracy, loss = (float(value) if np.isfinite(value) else None for value in values)
    return {"accuracy": accuracy, "loss": loss}


def one_process(images: np.ndarray, labels: np.ndarray, kernel: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """Accuracy and loss over all samples at once, without TensorFlow."""
    logits = images.astype(np.float64) @ kernel + bias
    losses = np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(len(labels)), labels]
    return np.array([np.mean(logits.argmax(axis=1) == labels), np.mean(losses)])


def one_process_weights(
    images: np.ndarray, labels: np.ndarray, kernel: np.ndarray, bias: np.ndarray, size: int
) -> list[np.ndarray]:
    """The weights after one epoch of SGD over the same global batches, without TensorFlow."""
    for start in range(0, len(labels), size):
        x, y = images[start : start + size].astype(np.float64), labels[start : start + size]
        odds = np.exp(x @ kernel + bias)
        error = (odds / odds.sum(axis=1, keepdims=True) - np.eye(10)[y]) / len(y)
        kernel, bias = kernel - LEARNING_RATE * x.T @ error, bias - LEARNING_RATE * error.sum(axis=0)
    return [kernel, bias]


def main() -> None:
    """Feed in every way, with every size of the global batch."""
    parser = argparse.ArgumentParser(description="Feed uneven data to several workers.")
    parser.add_argument("--dataset", choices=distlab.data.NAMES, default="digits", help="(default: digits)")
    parser.add_argument("--samples", type=int, default=1000, help="how many (default: 1000)")
    parser.add_argument("--global-batch", nargs="+", type=int, default=[96], help="sizes to try (default: 96)")
    parser.add_argument("--own-loop", action="store_true", help="hang, with the first size as the batch of a worker")
    parser.add_argument("--result", type=Path, help="JSON file that worker 0 writes")
    options = parser.parse_args()
    job = Job(options.dataset, options.samples)
    if options.own_loop:
        job.own_loop(options.global_batch[0])
        return
    result = {
        "workers": job.workers,
        "one_process": named(one_process(*job.arrays)),
        "feedings": job.feed_all(options.global_batch),
        "keras": [job.keras(size) for size in options.global_batch],
    }
    if job.index == 0 and options.result:
        options.result.write_text(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
