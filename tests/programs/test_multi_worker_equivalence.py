"""One device, mirrored devices and several workers train the same weights, by `fit` and by a custom loop."""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from distlab import checks, launch, models
from distlab.runtime import processes

pytestmark = pytest.mark.slow

STEPS, GLOBAL_BATCH, SEED = 20, 48, 7
LEARNING_RATE = 0.05  # that of train.py
DEADLINE = 900

ON_DEVICES = f"""
import sys

import numpy as np

from distlab import data, devices, models
import tensorflow as tf

file, count = sys.argv[1], int(sys.argv[2])
devices.divide_processor(count)
images, labels = data.load("digits").train
order = np.random.default_rng({SEED}).permutation(len(images))[: {STEPS * GLOBAL_BATCH}]
samples = tf.data.Dataset.from_tensor_slices((images[order], labels[order])).batch({GLOBAL_BATCH})


def new_model():
    tf.keras.utils.set_random_seed({SEED})
    return models.cnn()


def cross_entropies(labels, logits):
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)


def fit(strategy):
    with strategy.scope():
        model = new_model()
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(tf.keras.optimizers.SGD({LEARNING_RATE}), loss)
    model.fit(samples, epochs=1, verbose=0)
    return model.get_weights()


def loop(strategy, average):
    with strategy.scope():
        model = new_model()
        optimizer = tf.keras.optimizers.SGD({LEARNING_RATE})
        optimizer.build(model.trainable_variables)

    def step(images, labels):
        with tf.GradientTape() as tape:
            loss = average(cross_entropies(labels, model(images, training=True)))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))

    on_replicas = tf.function(lambda images, labels: strategy.run(step, args=(images, labels)))
    for images, labels in strategy.experimental_distribute_dataset(samples):
        on_replicas(images, labels)
    return model.get_weights()


def plainly():
    "Without strategy and optimizer, as a formula: the reference."
    model = new_model()
    for images, labels in samples:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(cross_entropies(labels, model(images)))
        for variable, gradient in zip(model.trainable_variables, tape.gradient(loss, model.trainable_variables)):
            variable.assign_sub({LEARNING_RATE} * gradient)
    return model.get_weights()


def of_global_batch(losses):
    return tf.nn.compute_average_loss(losses, global_batch_size={GLOBAL_BATCH})


weights = {{"initial": new_model().get_weights(), "plain": plainly()}}
strategies = {{f"{{count}} devices": tf.distribute.MirroredStrategy([f"CPU:{{number}}" for number in range(count)])}}
if count == 2:
    strategies["one device"] = tf.distribute.OneDeviceStrategy("CPU:0")
for name, strategy in strategies.items():
    weights[name + ", fit"] = fit(strategy)
    weights[name + ", loop"] = loop(strategy, of_global_batch)
    weights[name + ", wrong"] = loop(strategy, tf.reduce_mean)  # of the replica's samples, not of the global batch
arrays = {{f"{{run}}/{{place:02d}}": array for run in weights for place, array in enumerate(weights[run])}}
np.savez(file, **arrays)
"""

Weights = dict[str, list[np.ndarray]]


@pytest.fixture(scope="module")
def on_devices(tmp_path_factory: pytest.TempPathFactory) -> Weights:
    """The weights after 20 steps on one, two and three logical devices, by the name of the run.

    A process of its own for two and for three: the groups of a process's collectives keep their size.
    """
    folder = tmp_path_factory.mktemp("devices")
    weights: Weights = {}
    for count in ("2", "3"):
        file = folder / f"{count}.npz"
        finished = processes.run([sys.executable, "-c", ON_DEVICES, str(file), count], DEADLINE)
        assert finished.status == 0, finished.output
        with np.load(file) as arrays:
            names = sorted(arrays)
            weights |= {run: [arrays[name] for name in names if name.startswith(run + "/")] for run in runs_of(names)}
    return weights


def runs_of(names: list[str]) -> set[str]:
    return {name.rpartition("/")[0] for name in names}


@pytest.fixture(scope="module")
def of_workers(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Weights]:
    """The same of the program of notebook 07 on two or three workers; one launch for each number, when first asked."""
    done: dict[int, Weights] = {}

    def weights(workers: int) -> Weights:
        if workers not in done:
            folder = tmp_path_factory.mktemp("workers")
            launch.tensorflow(
                root / "notebooks/programs/07_multi_worker/train.py",
                *("--images", STEPS * GLOBAL_BATCH, "--global-batch", GLOBAL_BATCH, "--seed", SEED, "--folder", folder),
                workers=workers,
                seconds=DEADLINE,
                start_seconds=DEADLINE,
                echo=False,
            )
            model = models.cnn()
            newest = tf.train.latest_checkpoint(folder / "checkpoints")
            tf.train.Checkpoint(model=model).restore(newest).expect_partial().assert_existing_objects_matched()
            saved = tf.keras.models.load_model(folder / "fit" / "model.keras")
            done[workers] = {"fit": saved.get_weights(), "loop": model.get_weights()}
        return done[workers]

    return weights


def test_the_reference_has_trained(on_devices: Weights) -> None:
    assert checks.largest_difference(on_devices["initial"], on_devices["plain"]) > 0.01
    with pytest.raises(AssertionError, match="more than the tolerance"):
        checks.assert_equal_weights(on_devices["initial"], on_devices["plain"])


@pytest.mark.parametrize("way", ["fit", "loop"])
@pytest.mark.parametrize("devices", ["one device", "2 devices", "3 devices"])
def test_devices(on_devices: Weights, devices: str, way: str) -> None:
    checks.assert_equal_weights(on_devices[f"{devices}, {way}"], on_devices["plain"])


@pytest.mark.parametrize("way", ["fit", "loop"])
@pytest.mark.parametrize("workers", [2, 3])
def test_workers(on_devices: Weights, of_workers: Callable[[int], Weights], workers: int, way: str) -> None:
    checks.assert_equal_weights(of_workers(workers)[way], on_devices["plain"])


@pytest.mark.parametrize("devices", ["2 devices", "3 devices"])
def test_a_gradient_summed_instead_of_averaged_is_found(on_devices: Weights, devices: str) -> None:
    wrong = on_devices[f"{devices}, wrong"]
    assert checks.largest_difference(wrong, on_devices["plain"]) > 0.01
    with pytest.raises(AssertionError, match="more than the tolerance"):
        checks.assert_equal_weights(wrong, on_devices["plain"])


def test_on_one_device_the_known_wrong_sum_changes_nothing(on_devices: Weights) -> None:
    checks.assert_equal_weights(on_devices["one device, wrong"], on_devices["plain"])
