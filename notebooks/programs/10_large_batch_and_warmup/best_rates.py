"""How many steps to a target loss, for each batch size and learning rate?

    python best_rates.py --optimizers sgd adam --record

With `--record` the result goes to recorded/best_rates.json: both optimizers take more than ten
minutes on two cores. All rates and seeds are trained at once: the weights get two more axes,
seed and rate. A batch size ends at twice the steps of its best rate.
"""

import argparse
import sys
from pathlib import Path
from typing import NamedTuple

from distlab import data, recorded_results  # before TensorFlow: it selects tf-keras
from distlab.large_batch.global_batches import numbers

import numpy as np
import tensorflow as tf

BATCHES, HIDDEN, CLASSES = [2, 4, 8, 16, 32, 64, 128, 256, 512], 128, 10
TARGET, LOOKED_AT, MOST_STEPS = 0.3, 400, 4000  # the target: of the mean over 400 images
OPTIMIZERS = {"sgd": tf.keras.optimizers.SGD, "adam": tf.keras.optimizers.Adam}
LEAST_RATES = {"sgd": 0.01, "adam": 0.00025}
RATES = {name: least * np.sqrt(2) ** np.arange(15) for name, least in LEAST_RATES.items()}
"""The rates of each optimizer, in steps of √2."""


class Networks(tf.Module):
    """One network for each seed (first axis) and rate (second); SGD or Adam."""

    def __init__(self, optimizer: str, rates: np.ndarray, seeds: int, pixels: int) -> None:
        super().__init__()
        self.weights = []
        for shape in ((pixels, HIDDEN), (1, HIDDEN), (HIDDEN, CLASSES), (1, CLASSES)):
            # As Keras does: Glorot's rule, biases of 0.
            limit = np.sqrt(6 / sum(shape)) if shape[0] > 1 else 0.0
            generators = [np.random.default_rng([seed, *shape]) for seed in range(seeds)]
            first = np.stack([each.uniform(-limit, limit, shape) for each in generators])
            of_all = np.repeat(first[:, None], len(rates), axis=1)
            self.weights.append(tf.Variable(of_all.astype(np.float32)))
        # Keras multiplies by the rate element by element: it may be an array, too.
        self.optimizer = OPTIMIZERS[optimizer](rates.reshape(-1, 1, 1).astype(np.float32))
        self.optimizer.build(self.weights)

    @tf.function(reduce_retracing=True)
    def losses(self, images: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        """The mean loss of each network; images (seeds, 1, batch, pixels), labels likewise."""
        first, first_bias, second, second_bias = self.weights
        logits = tf.nn.relu(images @ first + first_bias) @ second + second_bias
        labels = tf.broadcast_to(labels, tf.shape(logits)[:-1])
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        return tf.reduce_mean(losses, axis=-1)

    @tf.function(reduce_retracing=True)
    def step(self, images: tf.Tensor, labels: tf.Tensor) -> None:
        """One step of each network, with its own rate."""
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(self.losses(images, labels))  # no network acts on another
        gradients = tape.gradient(loss, self.weights)
        self.optimizer.apply_gradients(zip(gradients, self.weights, strict=True))


def steps_to_target(
    optimizer: str, rates: np.ndarray, batch: int, dataset: str, seeds: int = 5
) -> np.ndarray:
    """Steps (seed, rate) until the loss is below the target, infinite if it did not get there.

    The loss is looked at from the tenth step on, whenever a thirtieth has been added.
    """
    images, labels = data.load(dataset).train
    images = images.reshape(len(images), -1)
    networks = Networks(optimizer, rates, seeds, images.shape[1])
    looked_at = images[None, None, :LOOKED_AT], labels[None, None, :LOOKED_AT]
    steps, done, look, end = np.full((seeds, len(rates)), np.inf), 0, 10, float(MOST_STEPS)
    while done < end and np.isinf(steps).any():
        of_seeds = [numbers(done, len(images), batch, seed) for seed in range(seeds)]
        chosen = np.stack(of_seeds)[:, None]
        networks.step(tf.constant(images[chosen]), tf.constant(labels[chosen]))
        done += 1
        if done == look:
            losses = networks.losses(*looked_at).numpy()
            steps[np.isinf(steps) & (losses < TARGET)] = done
            end = min(end, 2 * steps.mean(axis=0).min())
            look += max(1, done // 30)
    return steps


class Best(NamedTuple):
    """Of one batch size: the least steps, and the rates that need about as many."""

    steps: float  # the mean over the seeds
    deviation: float  # the standard deviation over them
    rate: float
    good_rates: list[float]  # those that need at most 15 % more steps


def best_of(optimizer: dict) -> dict[int, Best]:
    """For each batch size, from what the result has of one optimizer."""
    rates, found = optimizer["rates"], {}
    for batch, steps in optimizer["steps"].items():
        counts = np.array(steps, float)  # null becomes NaN, and so does a mean that has one
        means = counts.mean(axis=0)
        place = int(np.nanargmin(means))
        pairs = zip(rates, means, strict=True)
        good = [rate for rate, mean in pairs if mean <= 1.15 * means[place]]
        deviation = float(counts[:, place].std(ddof=1))
        found[int(batch)] = Best(float(means[place]), deviation, rates[place], good)
    return found


def measure(optimizer: str) -> dict:
    """The rates, and the steps of every batch, null where the target was not reached."""
    rates, of_batches = RATES[optimizer], {}
    for batch in BATCHES:
        steps = steps_to_target(optimizer, rates, batch, "digits")
        means = steps.mean(axis=0)
        best = f"{means.min():.1f} steps at {rates[means.argmin()]:.4f}"
        print(f"{optimizer}, batch {batch}: {best}", flush=True)
        of_batches[batch] = [
            [int(n) if np.isfinite(n) else None for n in row] for row in steps
        ]
    return {"rates": [float(f"{rate:.4g}") for rate in rates], "steps": of_batches}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Measure the steps to a target loss.")
    parser.add_argument("--optimizers", nargs="*", choices=RATES, default=["sgd"])
    parser.add_argument("--record", action="store_true", help="write recorded/best_rates.json")
    options = parser.parse_args()
    optimizers = {optimizer: measure(optimizer) for optimizer in options.optimizers}
    if options.record:
        versions = {"tensorflow": tf.__version__, "numpy": np.__version__}
        command = " ".join(["python", "best_rates.py", *sys.argv[1:]])
        result = {"dataset": "digits", "target": TARGET, "optimizers": optimizers}
        what = "best_rates.py", sys.argv[1:], result
        where = Path(__file__).with_name("recorded")
        recorded_results.write("best_rates", "TensorFlow", versions, command, *what, where)
