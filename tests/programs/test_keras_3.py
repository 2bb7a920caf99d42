"""Keras 3 on several workers (`keras_3.py` of notebook 08b) and `keras.distribution` (`keras_distribution.py`)."""

import json
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from distlab import checks, launch, programs

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_job")]

WORKERS, STEPS, SGD, ADAM = 2, 20, 0.1, 0.01
HOW = {"seconds": 900, "start_seconds": 600, "echo": False, "result": True}
OF_KERAS = ("DataParallel", "ModelParallel", "ModelParallel, part of the path")


@pytest.fixture(scope="module")
def chapter_folder(root: Path) -> Path:
    return root / "notebooks/programs/08b_keras_3"


@pytest.fixture(scope="module")
def keras_3(chapter_folder: Path) -> ModuleType:
    """The program, whose `serial` is a run of `fit` in this process, without a strategy."""
    return programs.module(chapter_folder / "keras_3.py")


@pytest.fixture(scope="module")
def two_workers(chapter_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict, dict[str, np.ndarray]]:
    """The result and the weights of one launch."""
    file = tmp_path_factory.mktemp("keras_3") / "weights.npz"
    arguments = ["--steps", STEPS, "--sgd", SGD, "--adam", ADAM, "--weights", file]
    run = launch.tensorflow(chapter_folder / "keras_3.py", *arguments, workers=WORKERS, **HOW)
    return run.result, dict(np.load(file))


@pytest.fixture(scope="module")
def serial(keras_3: ModuleType) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """The first and last weights on one device, by optimizer."""
    options = keras_3.parse(["--steps", str(STEPS)])
    rates = {"SGD": SGD, "Adam": ADAM}
    return {name: keras_3.serial(options, make(rates[name])) for name, make in keras_3.OPTIMIZERS.items()}


@pytest.fixture(scope="module")
def here(chapter_folder: Path) -> dict:
    """What `keras_distribution.py` measures on TensorFlow."""
    return launch.tensorflow(chapter_folder / "keras_distribution.py", workers=1, **HOW).result


@pytest.fixture(scope="module")
def on_jax(chapter_folder: Path) -> dict:
    """What it recorded on JAX."""
    return json.loads((chapter_folder / "keras_distribution_jax.json").read_text())


def difference(one: np.ndarray, other: np.ndarray) -> float:
    return checks.largest_difference([one], [other])


@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])
@pytest.mark.parametrize("way", ["as they are", "averaged before"])
def test_a_custom_loop_of_keras_3_on_two_workers_equals_one_process(
    two_workers: tuple, serial: dict, optimizer: str, way: str
) -> None:
    result, weights = two_workers
    first, last = serial[optimizer]
    assert result["workers"] == 2 and len(result["losses"][f"{optimizer}, {way}"]) == STEPS
    assert difference(first, last) > 0.05
    assert difference(weights[f"{optimizer}, {way}"], last) < checks.TOLERANCE


def test_an_all_reduce_too_many_is_twice_the_learning_rate_under_sgd(
    two_workers: tuple, serial: dict, keras_3: ModuleType
) -> None:
    doubled = two_workers[1]["SGD, added before"]
    assert difference(doubled, serial["SGD"][1]) > 0.1
    _, twice_the_rate = keras_3.serial(keras_3.parse([]), keras_3.OPTIMIZERS["SGD"](WORKERS * SGD))
    assert difference(doubled, twice_the_rate) < checks.TOLERANCE


def test_an_all_reduce_too_many_is_hidden_by_adam_from_the_loss(two_workers: tuple) -> None:
    losses, weights = two_workers[0]["losses"], two_workers[1]
    right, doubled = (np.array(losses[f"Adam, {way}"]) for way in ("as they are", "added before"))
    assert right[-1] < right[0] - 0.5
    np.testing.assert_allclose(doubled, right, atol=1e-3)
    # The check of the weights finds it all the same.
    assert difference(weights["Adam, added before"], weights["Adam, as they are"]) > 100 * checks.TOLERANCE
    assert abs(losses["SGD, added before"][-1] - losses["SGD, as they are"][-1]) > 0.02


def test_a_step_of_adam_is_the_same_for_a_gradient_of_any_scale_unless_it_is_near_epsilon(keras_3: ModuleType) -> None:
    """The formula of Kingma and Ba (2015), end of section 2, against Keras 3."""
    gradient, epsilon = np.array([3.0, -0.02, 1e-7], np.float32), 1e-7
    variable = keras_3.keras.Variable(np.zeros(3, np.float32))
    steps = []
    for scale in (1, 2):
        variable.assign(np.zeros(3))
        keras_3.OPTIMIZERS["Adam"](ADAM, epsilon=epsilon).apply([keras_3.tf.constant(scale * gradient)], [variable])
        steps.append(variable.numpy())
        # After one step the means, corrected for their start, are the gradient and its square.
        by_hand = -ADAM * scale * gradient / (np.abs(scale * gradient) + epsilon / np.sqrt(1 - 0.999))
        np.testing.assert_allclose(steps[-1], by_hand, rtol=1e-3)
    np.testing.assert_allclose(steps[0][:2], steps[1][:2], rtol=1e-3)
    assert abs(steps[1][2]) > 1.5 * abs(steps[0][2])


@pytest.mark.parametrize("name", OF_KERAS)
def test_keras_distribution_is_accepted_on_tensorflow_and_does_nothing(here: dict, name: str) -> None:
    run, nothing = here["runs"][name], here["runs"]["no distribution"]
    again = "keras.distribution does something on TensorFlow now: notebook 08b, section 4, is out of date"
    assert (run["kernel"], run["batch"]) == (nothing["kernel"], nothing["batch"]), again
    assert len(nothing["kernel"]) == len(nothing["batch"]) == 1
    assert run["differs"] == 0.0


def test_the_probe_sees_devices_that_share_the_work(here: dict) -> None:
    run = here["runs"]["MirroredStrategy"]
    assert sorted(shape for _, shape in run["kernel"]) == [[784, 16]] * 4
    assert sorted(shape for _, shape in run["batch"]) == [[16, 784]] * 4
    assert len({device for device, _ in run["batch"]}) == len({device for device, _ in run["kernel"]}) == 4
    assert run["differs"] < checks.TOLERANCE


def test_on_jax_the_same_program_saw_the_batch_and_the_kernel_split(on_jax: dict) -> None:
    shapes = {
        name: [sorted(shape for _, shape in run[what]) for what in ("kernel", "batch")]
        for name, run in on_jax["runs"].items()
    }
    assert shapes == {
        "no distribution": [[[784, 16]], [[64, 784]]],
        "DataParallel": [[[784, 16]] * 4, [[16, 784]] * 4],
        "ModelParallel": [[[784, 4]] * 4, [[64, 784]] * 4],
        "ModelParallel, part of the path": [[[784, 16]] * 4, [[64, 784]] * 4],
    }
    assert max(run["differs"] for run in on_jax["runs"].values()) < checks.TOLERANCE
    assert on_jax["versions"]["keras"] == version("keras"), "measure it again on JAX, with the Keras of the lock"
