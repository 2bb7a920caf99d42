"""The programs of notebook 10: ranks equal one process, runs resume, and warm-up decides whether training works."""

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import tensorflow as tf

from distlab import checks, data, launch, models, programs
from distlab.large_batch import global_batches, noise_scale, schedules
from distlab.runtime import environment

environment.apply()  # puts this environment's mpirun on the path

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_job")]

RANKS, PER_REPLICA, EPOCHS = 2, 24, 2
GLOBAL_BATCH = RANKS * PER_REPLICA
PATIENT = {"echo": False, "seconds": 900, "start_seconds": 600}


@pytest.fixture(scope="module")
def chapter_folder(root: Path) -> Path:
    return root / "notebooks/programs/10_large_batch_and_warmup"


@pytest.fixture(scope="module")
def one_process(chapter_folder: Path) -> ModuleType:
    return programs.module(chapter_folder / "one_process.py")


@pytest.fixture(scope="module")
def ranks(chapter_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict:
    """One launch for all: a run of two epochs, the same again to three, noise scale, batch normalisation, callback."""
    if problem := launch.horovod_problem():
        pytest.skip(problem)
    folder = tmp_path_factory.mktemp("checkpoints")
    train = ["train", "--schedules", "gradual", "--per-replica-batch", PER_REPLICA, "--checkpoints", folder]
    arguments = [*train, "--epochs", EPOCHS, "--then", *train, "--epochs", EPOCHS + 1]
    arguments += ["--then", "noise_scale", "--steps", 60, "--per-replica-batch", 16, "--then", "batch_norm"]
    arguments += ["--then", "warm_up_callback"]
    result = launch.mpirun(chapter_folder / "together.py", *arguments, ranks=RANKS, result=True, **PATIENT).result
    return result | {"files": sorted(file.name for file in folder.iterdir())}


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


def test_a_run_goes_on_from_rank_0_s_checkpoint(ranks: dict, one_process: ModuleType) -> None:
    first, resumed = ranks["train"]["runs"]["gradual"], ranks["train 2"]["runs"]["gradual"]
    assert len(first["seconds"]) == EPOCHS and len(resumed["seconds"]) == EPOCHS + 1
    assert {name: values[:EPOCHS] for name, values in resumed.items()} == first  # seconds too: nothing was done again
    assert ranks["files"] == ["gradual.npz", "trained_on.txt"]
    # The epoch after the restart is that of a run without one.
    alone = one_process.OneProcess("digits", lambda: models.cnn(8))
    rate_at = schedules.by_name("gradual", 0.01, RANKS, 3)
    whole = alone.run(rate_at, GLOBAL_BATCH, EPOCHS + 1, seed=0)
    assert resumed["loss"] == pytest.approx(whole["loss"], rel=0.02)


def test_horovod_s_callback_raises_the_rate_as_the_gradual_warm_up_does(ranks: dict) -> None:
    run = ranks["warm_up_callback"]
    epochs = np.arange(1, len(run["rates"]) + 1) / run["steps_per_epoch"]
    rate_at = schedules.gradual_warm_up(run["rate"], RANKS * run["rate"], run["warm_up_epochs"])
    np.testing.assert_allclose(run["rates"], [rate_at(epoch) for epoch in epochs], rtol=1e-4)
    assert epochs[-1] > run["warm_up_epochs"]


def test_the_ranks_squared_norms_are_those_of_one_process(ranks: dict) -> None:
    recorded = ranks["noise_scale"]
    images, labels = data.load("digits").train
    tf.keras.utils.set_random_seed(0)
    model = models.mlp(dropout=0.0)
    batch = global_batches.numbers(0, len(images), recorded["big_batch"], 0)

    def squared(numbers: np.ndarray) -> float:
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels[numbers], model(images[numbers]))
            loss = tf.reduce_mean(losses)
        gradients = tape.gradient(loss, model.trainable_variables)
        return float(sum(np.sum(gradient.numpy() ** 2) for gradient in gradients))

    assert recorded["big_squares"][0] == pytest.approx(squared(batch), rel=1e-3)
    halves = [squared(half) for half in np.split(batch, RANKS)]
    assert recorded["small_squares"][0] == pytest.approx(np.mean(halves), rel=1e-3)
    squares = recorded["small_squares"], recorded["big_squares"]
    assert noise_scale.estimate(recorded["small_batch"], recorded["big_batch"], *squares).variance > 0


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


@pytest.mark.parametrize(("dataset", "global_batch"), [("digits", 96), ("mnist", 560)])
def test_most_seeds_diverge_without_warm_up_and_none_with_it(
    one_process: ModuleType, dataset: str, global_batch: int
) -> None:
    """Of five seeds, at 8 times the learning rate."""
    if dataset != "digits" and data.find(dataset) is None:
        pytest.skip(f"{dataset} is not on this machine; set DISTLAB_DATA to the folder that holds it")
    training = one_process.OneProcess(dataset, lambda: models.cnn(8), images=8_000)
    diverged = {}
    for name in ("none", "gradual"):
        rate_at = schedules.by_name(name, 0.01, 8, 3)
        runs = [training.run(rate_at, global_batch, 6, seed) for seed in range(5)]
        diverged[name] = sum(run["accuracy"][-1] < one_process.AT_CHANCE for run in runs)
    assert diverged["none"] >= 3
    assert diverged["gradual"] == 0
