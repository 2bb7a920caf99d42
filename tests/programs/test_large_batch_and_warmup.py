"""The programs of notebook 10: networks trained together equal those trained alone; warm-up decides what is learnt.

That ranks equal one process, with synchronised batch normalisation too, the notebook shows by numbers.
"""

from collections.abc import Callable

import numpy as np
import pytest
import tensorflow as tf

from distlab import checks, data, models, programs, recorded_results
from distlab.large_batch import global_batches, schedules

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_job")]

CHAPTER = programs.FOLDER / "10_large_batch_and_warmup"


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_networks_that_are_trained_together_are_those_trained_alone(chapter: Callable, optimizer: str) -> None:
    best_rates, rates = chapter("best_rates"), np.array([0.001, 0.05])
    images, labels = data.load("digits").train
    together = best_rates.Networks(optimizer, rates, 2, images[0].size)
    first = [[variable.numpy()[seed, 0] for variable in together.weights] for seed in range(2)]
    for step in range(3):
        numbers = np.stack([global_batches.numbers(step, len(images), 8, seed) for seed in range(2)])[:, None]
        together.step(tf.constant(images.reshape(len(images), -1)[numbers]), tf.constant(labels[numbers]))
    for seed, number in np.ndindex(2, 2):
        alone = models.mlp(dropout=0.0)
        alone.set_weights([each.squeeze() for each in first[seed]])
        of_keras = {"sgd": tf.keras.optimizers.SGD, "adam": tf.keras.optimizers.Adam}[optimizer](rates[number])
        alone.compile(of_keras, tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        for step in range(3):
            chosen = global_batches.numbers(step, len(images), 8, seed)
            alone.train_on_batch(images[chosen], labels[chosen])
        found = [variable.numpy()[seed, number] for variable in together.weights]
        checks.assert_equal_weights([each.squeeze() for each in found], alone.get_weights(), tolerance=1e-4)


def test_most_seeds_diverge_without_warm_up_and_none_with_it(chapter: Callable) -> None:
    """At 8 times the learning rate: three seeds on the digits, and the five that are recorded on MNIST."""
    one_process = chapter("one_process")
    training, ends = one_process.OneProcess("digits", lambda: models.cnn(8), images=8_000), {}
    for name in ("none", "gradual"):
        rate_at = schedules.by_name(name, 0.01, 8, 3)
        ends[name] = [training.run(rate_at, 96, 6, seed)["accuracy"][-1] for seed in range(3)]
    assert sum(end < one_process.AT_CHANCE for end in ends["none"]) >= 2
    assert min(ends["gradual"]) > one_process.AT_CHANCE
    record = recorded_results.read("mnist", chapter("five_seeds").FOLDER)
    recorded = {name: np.array(rows)[:, -1] for name, rows in record.result["accuracies"].items()}
    assert np.sum(recorded["none"] < one_process.AT_CHANCE) >= 3 and min(recorded["gradual"]) > 0.9
