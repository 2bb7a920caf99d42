"""The programs of notebook 10: ranks equal one process, networks trained together equal those trained alone, and
warm-up decides whether training works."""

from collections.abc import Callable
from types import ModuleType

import numpy as np
import pytest
import tensorflow as tf

from distlab import checks, data, launch, models, programs, recorded_results
from distlab.large_batch import global_batches, schedules

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_job")]

CHAPTER = programs.FOLDER / "10_large_batch_and_warmup"

RANKS, PER_REPLICA = 2, 24
GLOBAL_BATCH = RANKS * PER_REPLICA
PATIENT = {"echo": False, "seconds": 900, "start_seconds": 600}


@pytest.fixture(scope="module")
def one_process(chapter: Callable) -> ModuleType:
    return chapter("one_process")


@pytest.fixture(scope="module")
def ranks() -> dict:
    """One launch for all: a run of two epochs, batch normalisation."""
    if problem := launch.horovod_problem():
        pytest.skip(problem)
    train = ["train", "--schedules", "gradual", "--per-replica-batch", PER_REPLICA, "--epochs", 2]
    return launch.mpirun(
        CHAPTER / "together.py", *train, "--then", "batch_norm", ranks=RANKS, result=True, **PATIENT
    ).result


def arrays(weights: list) -> list[np.ndarray]:
    return [np.array(one) for one in weights]


def test_ranks_have_the_weights_of_one_process(ranks: dict, one_process: ModuleType) -> None:
    alone = one_process.OneProcess("digits", lambda: models.cnn(8), tf.keras.optimizers.SGD())
    alone.begin(seed=0)
    before = alone.model.get_weights()
    assert (ranks["train"]["ranks"], ranks["train"]["global_batch"]) == (RANKS, GLOBAL_BATCH)
    alone.steps(0, 20, GLOBAL_BATCH, 0, schedules.without_warm_up(0.05))
    assert checks.largest_difference(before, alone.model.get_weights()) > 0.01
    checks.assert_equal_weights(arrays(ranks["train"]["weights"]), alone.model.get_weights())


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


def keras_weights(global_batch: int) -> list[np.ndarray]:
    """One process with Keras's own batch normalisation on the global batch."""
    images, labels = data.load("digits").train
    layers = tf.keras.layers
    tf.keras.utils.set_random_seed(0)
    inner = [layers.Dense(16, use_bias=False), layers.BatchNormalization(momentum=0.9, epsilon=1e-3), layers.ReLU()]
    model = tf.keras.Sequential([layers.Flatten(), *inner, layers.Dense(10)])
    model.compile(tf.keras.optimizers.SGD(0.1), tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    for step in range(20):
        chosen = global_batches.numbers(step, len(images), global_batch, 0)
        model.train_on_batch(images[chosen], labels[chosen])
    return [variable.numpy() for variable in model.trainable_variables]


def test_synchronised_batch_normalisation_is_that_of_one_process_and_per_rank_is_not(ranks: dict) -> None:
    found = ranks["batch_norm"]
    expected = keras_weights(found["global_batch"])
    checks.assert_equal_weights(arrays(found["synchronised"]["weights"]), expected)
    checks.assert_equal_weights(arrays(found["Horovod's layer"]["weights"]), expected)
    assert checks.largest_difference(arrays(found["per rank"]["weights"]), expected) > 1e-3
    for way, is_equal in (("per rank", False), ("synchronised", True), ("Horovod's layer", True)):
        of_ranks = np.array(found[way]["moving_variances"])
        assert np.allclose(of_ranks[0], of_ranks[1], atol=1e-6) == is_equal, way


def test_most_seeds_diverge_without_warm_up_and_none_with_it(chapter: Callable, one_process: ModuleType) -> None:
    """At 8 times the learning rate: three seeds on the digits, and the five that are recorded on MNIST."""
    training = one_process.OneProcess("digits", lambda: models.cnn(8), images=8_000)
    ends = {}
    for name in ("none", "gradual"):
        rate_at = schedules.by_name(name, 0.01, 8, 3)
        ends[name] = [training.run(rate_at, 96, 6, seed)["accuracy"][-1] for seed in range(3)]
    assert (
        sum(end < one_process.AT_CHANCE for end in ends["none"]) >= 2 and min(ends["gradual"]) > one_process.AT_CHANCE
    )
    record = recorded_results.read("mnist", chapter("five_seeds").FOLDER)
    recorded = {name: np.array(rows)[:, -1] for name, rows in record.result["accuracies"].items()}
    assert np.sum(recorded["none"] < one_process.AT_CHANCE) >= 3 and min(recorded["gradual"]) > 0.9
