"""Keras 3 on several workers (`keras_3.py` of notebook 08b) and `keras.distribution` (`keras_distribution.py`)."""

import json
from importlib.metadata import version
from types import ModuleType

import numpy as np
import pytest

from distlab import checks, launch, programs

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_job")]

CHAPTER = programs.FOLDER / "08b_keras_3"

WORKERS, STEPS, SGD, ADAM = 2, 20, 0.1, 0.01
HOW = {"seconds": 900, "start_seconds": 600, "echo": False, "result": True}


@pytest.fixture(scope="module")
def keras_3() -> ModuleType:
    """The program, whose `serial` is a run of `fit` in this process, without a strategy."""
    return programs.module(CHAPTER / "keras_3.py")


@pytest.fixture(scope="module")
def two_workers(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict, dict[str, np.ndarray]]:
    """The result and the weights of one launch."""
    file = tmp_path_factory.mktemp("keras_3") / "weights.npz"
    arguments = ["--steps", STEPS, "--sgd", SGD, "--adam", ADAM, "--weights", file]
    run = launch.tensorflow(CHAPTER / "keras_3.py", *arguments, workers=WORKERS, **HOW)
    return run.result, dict(np.load(file))


@pytest.fixture(scope="module")
def serial(keras_3: ModuleType) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """The first and last weights on one device, by optimizer."""
    options = keras_3.parse(["--steps", str(STEPS)])
    rates = {"SGD": SGD, "Adam": ADAM}
    return {name: keras_3.serial(options, make(rates[name])) for name, make in keras_3.OPTIMIZERS.items()}


@pytest.fixture(scope="module")
def here() -> dict:
    """What `keras_distribution.py` measures on TensorFlow."""
    return launch.tensorflow(CHAPTER / "keras_distribution.py", workers=1, **HOW).result


def difference(one: np.ndarray, other: np.ndarray) -> float:
    return checks.largest_difference([one], [other])


def test_a_custom_loop_of_keras_3_on_two_workers_equals_one_process(two_workers: tuple, serial: dict) -> None:
    result, weights = two_workers
    for optimizer, (first, last) in serial.items():
        assert difference(first, last) > 0.05
        for way in ("as they are", "averaged before"):
            assert result["workers"] == 2 and len(result["losses"][f"{optimizer}, {way}"]) == STEPS
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


def test_keras_distribution_is_accepted_on_tensorflow_and_does_nothing(here: dict) -> None:
    nothing = here["runs"]["nothing"]
    again = "keras.distribution does something on TensorFlow now: notebook 08b, section 4, is out of date"
    assert len(nothing["kernel"]) == len(nothing["batch"]) == 1
    for run in map(here["runs"].get, ("DataParallel", "ModelParallel", "ModelParallel, part of the path")):
        assert (run["kernel"], run["batch"], run["differs"]) == (nothing["kernel"], nothing["batch"], 0.0), again


def test_on_jax_the_same_program_saw_the_batch_and_the_kernel_split() -> None:
    on_jax = json.loads((CHAPTER / "keras_distribution_jax.json").read_text())
    shapes = {
        name: [sorted(shape for _, shape in run[what]) for what in ("kernel", "batch")]
        for name, run in on_jax["runs"].items()
    }
    assert shapes == {
        "nothing": [[[784, 16]], [[64, 784]]],
        "DataParallel": [[[784, 16]] * 4, [[16, 784]] * 4],
        "ModelParallel": [[[784, 4]] * 4, [[64, 784]] * 4],
        "ModelParallel, part of the path": [[[784, 16]] * 4, [[64, 784]] * 4],
    }
    assert max(run["differs"] for run in on_jax["runs"].values()) < checks.TOLERANCE
    assert set(on_jax["errors"].values()) == {None}
    assert on_jax["versions"]["keras"] == version("keras"), "measure it again on JAX, with the Keras of the lock"
