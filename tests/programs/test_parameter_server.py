"""`parameter_server.py` of notebook 08 as a real cluster."""

from pathlib import Path

import numpy as np
import pytest

from distlab import checks, launch

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_job")]

GRADIENTS, SECONDS, SLOW_SECONDS = 60, 0.1, 0.5
WORKERS, SERVERS = 2, 2
DEADLINES = {"seconds": 900, "start_seconds": 600, "echo": False, "result": True}


def chapter_folder(root: Path, name: str) -> Path:
    return root / "notebooks/programs/08_other_strategies" / name


@pytest.fixture(scope="module")
def weights_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("weights") / "weights.npz"


@pytest.fixture(scope="module")
def asynchronous(root: Path, weights_file: Path) -> dict:
    """One launch of a chief, two workers and two parameter servers, for all tests."""
    arguments = ["--runs", "in_order", "equal", "slow", "--gradients", GRADIENTS, "--weights", weights_file]
    arguments += ["--seconds", SECONDS, "--slow-seconds", SLOW_SECONDS]
    program = chapter_folder(root, "parameter_server.py")
    return launch.tensorflow(program, *arguments, workers=WORKERS, parameter_servers=SERVERS, **DEADLINES).result


def by_worker(run: dict) -> list[np.ndarray]:
    """The staleness of each worker's gradients."""
    worker, staleness = np.array(run["worker"]), np.array(run["staleness"])
    return [staleness[worker == index] for index in range(WORKERS)]


@pytest.mark.parametrize(("name", "gradients"), [("in_order", 20), ("equal", GRADIENTS), ("slow", GRADIENTS)])
def test_every_gradient_is_applied_once(asynchronous: dict, name: str, gradients: int) -> None:
    run = asynchronous["runs"][name]
    assert run["updates"] == gradients
    assert len(run["worker"]) == len(run["staleness"]) == len(run["time"]) == gradients
    assert set(run["worker"]) <= set(range(WORKERS))
    assert min(run["time"]) > 0
    # The mean is never above the number of other workers.
    assert np.mean(run["staleness"]) <= WORKERS - 1


@pytest.mark.parametrize("name", ["equal", "slow"])
def test_the_loss_falls(asynchronous: dict, name: str) -> None:
    losses = [loss for _, _, loss in asynchronous["runs"][name]["curve"]]
    assert losses[0] == pytest.approx(np.log(10), abs=0.5)
    assert losses[-1] < 0.7 * losses[0]


def test_in_order_nothing_is_stale_and_the_weights_are_those_of_one_device(
    asynchronous: dict, weights_file: Path
) -> None:
    assert set(asynchronous["runs"]["in_order"]["staleness"]) == {0}
    saved = list(np.load(weights_file).values())
    checks.assert_equal_weights([np.concatenate(saved[:SERVERS]), *saved[SERVERS:]], serial(20))


def test_the_slow_worker_does_less_and_is_staler(asynchronous: dict) -> None:
    fast, slow = by_worker(asynchronous["runs"]["slow"])
    assert len(fast) > len(slow) > 0
    assert slow.mean() > fast.mean()


def test_the_large_variable_lies_on_both_servers(asynchronous: dict) -> None:
    pieces = [one for one in asynchronous["variables"] if "kernel/part_" in one["name"]]
    assert [piece["shape"] for piece in pieces] == [[392, 128], [392, 128]]
    assert {piece["device"].split("/device")[0] for piece in pieces} == {
        f"/job:ps/replica:0/task:{server}" for server in range(SERVERS)
    }
    assert len(asynchronous["variables"]) == 5
    assert all(one["device"].startswith("/job:ps/") for one in asynchronous["variables"])


def serial(steps: int, learning_rate: float = 0.03) -> list[np.ndarray]:
    """The weights after so many steps of one device, over the same batches."""
    import tensorflow as tf  # here, since it takes seconds to start

    from distlab import data, models

    images, labels = (part[:1280] for part in data.load("digits").train)
    tf.keras.utils.set_random_seed(8)
    model = models.mlp(dropout=0.0)
    for step in range(steps):
        part = slice(32 * step, 32 * (step + 1))
        with tf.GradientTape() as tape:
            logits = model(images[part])
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels[part], logits))
        for variable, gradient in zip(
            model.trainable_variables, tape.gradient(loss, model.trainable_variables), strict=True
        ):
            variable.assign_sub(learning_rate * gradient)
    return model.get_weights()
