"""How many steps to a target loss, for each batch size and learning rate: all rates and seeds are trained at once.

    python best_rates.py --batches 32 --result result.json
    python best_rates.py --optimizers sgd adam --record

With `--record` the result goes to recorded/best_rates.json: both optimizers take more than ten minutes on two cores.
Equal networks can be trained together: their weights get two more axes, seed and rate. The network is the lecture's,
without dropout. A batch size ends at twice the steps of its best rate.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import NamedTuple

from distlab import data, large_batch, recorded_results  # before TensorFlow: it selects tf-keras

import numpy as np
import tensorflow as tf

HIDDEN, CLASSES = 128, 10
TARGET, LOOKED_AT, MOST_STEPS = 0.3, 400, 4000
"""The target is for the mean loss over the first LOOKED_AT training images."""
LEAST_RATES = {"sgd": 0.01, "adam": 0.00025}
RATES = {name: least * np.sqrt(2) ** np.arange(15) for name, least in LEAST_RATES.items()}
"""The rates of each optimizer, in steps of √2."""


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Steps to a target loss for each batch size and learning rate.")
    parser.add_argument("--dataset", choices=data.NAMES, default="digits")
    parser.add_argument("--optimizers", nargs="*", choices=RATES, default=["sgd"])
    parser.add_argument("--batches", nargs="*", type=int, default=[2, 4, 8, 16, 32, 64, 128, 256, 512])
    parser.add_argument("--result", type=Path, help="JSON file for the result")
    parser.add_argument("--record", action="store_true", help="write recorded/best_rates.json")
    return parser.parse_args()


class Networks(tf.Module):
    """One network for each seed (first axis) and learning rate (second); SGD or Adam, as in Keras."""

    def __init__(self, optimizer: str, rates: np.ndarray, seeds: int, pixels: int) -> None:
        super().__init__()
        self.rates = tf.constant(rates.reshape(-1, 1, 1), tf.float32)
        self.is_adam, self.step_number = optimizer == "adam", tf.Variable(0.0)
        self.weights = []
        for shape in ((pixels, HIDDEN), (1, HIDDEN), (HIDDEN, CLASSES), (1, CLASSES)):
            limit = np.sqrt(6 / sum(shape)) if shape[0] > 1 else 0.0  # as Keras does: Glorot's rule, biases of 0
            first = [np.random.default_rng([seed, *shape]).uniform(-limit, limit, shape) for seed in range(seeds)]
            of_all = np.repeat(np.stack(first)[:, None], len(rates), axis=1)
            self.weights.append(tf.Variable(of_all.astype(np.float32)))
        self.moments = [[tf.Variable(tf.zeros_like(each)) for each in self.weights] for _ in range(2 * self.is_adam)]

    @tf.function(reduce_retracing=True)
    def losses(self, images: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        """The mean loss of each network; images (seeds, 1, batch, pixels), labels (seeds, 1, batch)."""
        first, first_bias, second, second_bias = self.weights
        logits = tf.nn.relu(images @ first + first_bias) @ second + second_bias
        labels = tf.broadcast_to(labels, tf.shape(logits)[:-1])
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits), axis=-1)

    @tf.function(reduce_retracing=True)
    def step(self, images: tf.Tensor, labels: tf.Tensor) -> None:
        """One step of each network, with its own rate."""
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(self.losses(images, labels))  # a network's gradient has nothing of the others' losses
        gradients = tape.gradient(loss, self.weights)
        if not self.is_adam:
            for weights, gradient in zip(self.weights, gradients, strict=True):
                weights.assign_sub(self.rates * gradient)
            return
        number = self.step_number.assign_add(1.0)
        for weights, gradient, mean, square in zip(self.weights, gradients, *self.moments, strict=True):
            mean.assign(0.9 * mean + 0.1 * gradient)
            square.assign(0.999 * square + 0.001 * gradient**2)
            corrected = self.rates * tf.sqrt(1 - 0.999**number) / (1 - 0.9**number)
            weights.assign_sub(corrected * mean / (tf.sqrt(square) + 1e-7))


def steps_to_target(optimizer: str, rates: np.ndarray, batch: int, dataset: str, seeds: int = 5) -> np.ndarray:
    """Steps (seed, rate) until the loss is below the target, infinite if it did not get there.

    The loss is looked at from the tenth step on, whenever a thirtieth has been added.
    """
    images, labels = data.load(dataset).train
    images = images.reshape(len(images), -1)
    networks = Networks(optimizer, rates, seeds, images.shape[1])
    steps, done, look, end = np.full((seeds, len(rates)), np.inf), 0, 10, float(MOST_STEPS)
    while done < end and np.isinf(steps).any():
        numbers = [large_batch.global_batches.numbers(done, len(images), batch, seed) for seed in range(seeds)]
        chosen = np.stack(numbers)[:, None]
        networks.step(tf.constant(images[chosen]), tf.constant(labels[chosen]))
        done += 1
        if done == look:
            losses = networks.losses(images[None, None, :LOOKED_AT], labels[None, None, :LOOKED_AT]).numpy()
            steps[np.isinf(steps) & (losses < TARGET)] = done
            end = min(end, 2 * steps.mean(axis=0).min())
            look += max(1, done // 30)
    return steps


class Best(NamedTuple):
    """Of one batch size: the least steps as a mean over the seeds, and the rates that need about as many."""

    steps: float
    deviation: float  # standard deviation over the seeds
    rate: float
    good_rates: list[float]  # those that need at most 15 % more steps


def best_of(optimizer: dict) -> dict[int, Best]:
    """For each batch size, from what the result has of one optimizer."""
    rates, found = optimizer["rates"], {}
    for batch, steps in optimizer["steps"].items():
        counts = np.array(steps, float)  # null becomes NaN, and so does a mean that has one
        means = counts.mean(axis=0)
        place = int(np.nanargmin(means))
        good = [rate for rate, mean in zip(rates, means, strict=True) if mean <= 1.15 * means[place]]
        found[int(batch)] = Best(float(means[place]), float(counts[:, place].std(ddof=1)), rates[place], good)
    return found


def main() -> None:
    """Every optimizer and batch; the rates and the steps, null where the target was not reached."""
    options = parse()
    result = {"dataset": options.dataset, "target": TARGET, "optimizers": {}}
    for optimizer in options.optimizers:
        rates, of_batches = RATES[optimizer], {}
        for batch in options.batches:
            steps = steps_to_target(optimizer, rates, batch, options.dataset)
            means = steps.mean(axis=0)
            print(f"{optimizer}, batch {batch}: {means.min():.1f} steps at {rates[means.argmin()]:.4f}", flush=True)
            of_batches[batch] = [[int(count) if np.isfinite(count) else None for count in row] for row in steps]
        result["optimizers"][optimizer] = {"rates": [float(f"{rate:.4g}") for rate in rates], "steps": of_batches}
    if options.result:
        options.result.write_text(json.dumps(result) + "\n")
    if options.record:
        program, versions = Path(__file__), {"tensorflow": tf.__version__, "numpy": np.__version__}
        command = " ".join(["python", program.name, *sys.argv[1:]])
        where = program.parent / "recorded"
        arguments = [program.name, sys.argv[1:], result]
        recorded_results.write("best_rates", "TensorFlow", versions, command, *arguments, folder=where)


if __name__ == "__main__":
    main()
