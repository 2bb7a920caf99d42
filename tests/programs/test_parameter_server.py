"""`parameter_server.py` of notebook 08 as a real cluster."""

import signal
from pathlib import Path

import numpy as np
import pytest

from distlab import checks, launch

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_job")]

GRADIENTS, WORKERS, SERVERS = 60, 2, 2
RUNS = ["in_order", "equal", "slow", "lost_worker", "lost_server"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cluster")


@pytest.fixture(scope="module")
def run(root: Path, folder: Path) -> launch.LaunchedRun:
    """One launch of a chief, two workers and two parameter servers, for all tests."""
    program = root / "notebooks/programs/08_other_strategies/parameter_server.py"
    arguments = ["--runs", *RUNS, "--gradients", GRADIENTS, "--folder", folder]
    how = {"seconds": 900, "start_seconds": 600, "echo": False, "result": True, "may_lose": True}
    return launch.tensorflow(program, *arguments, workers=WORKERS, parameter_servers=SERVERS, **how)


def test_every_gradient_is_applied_once(run: launch.LaunchedRun) -> None:
    for name, gradients in (("in_order", 20), ("equal", GRADIENTS), ("slow", GRADIENTS)):
        found = run.result["runs"][name]
        assert found["updates"] == gradients
        assert len(found["worker"]) == len(found["staleness"]) == found["scheduled"] == gradients
        assert set(found["worker"]) <= set(range(WORKERS))
        assert np.mean(found["staleness"]) <= WORKERS - 1  # never above the number of other workers


def test_in_order_nothing_is_stale_and_the_weights_are_those_of_one_device(
    run: launch.LaunchedRun, folder: Path
) -> None:
    assert set(run.result["runs"]["in_order"]["staleness"]) == {0}
    saved = list(np.load(folder / "weights.npz").values())
    checks.assert_equal_weights([np.concatenate(saved[:SERVERS]), *saved[SERVERS:]], serial(20))


def test_others_do_the_steps_of_a_lost_worker(run: launch.LaunchedRun) -> None:
    lost = run.result["runs"]["lost_worker"]
    assert run.exit_codes[f"worker {WORKERS - 1}"] == -signal.SIGKILL
    # A step may run twice if its worker dies after the update and before the answer.
    assert len(lost["worker"]) == lost["scheduled"] == GRADIENTS <= lost["updates"] <= GRADIENTS + 1
    assert set(lost["worker"][-GRADIENTS // 4 :]) == {0}


def test_a_lost_server_ends_the_job(run: launch.LaunchedRun) -> None:
    assert run.exit_codes[f"ps {SERVERS - 1}"] == -signal.SIGKILL
    assert run.result["runs"]["lost_server"] == {"error": "UnavailableError"}


def test_the_large_variable_lies_on_both_servers(run: launch.LaunchedRun) -> None:
    pieces = [one for one in run.result["variables"] if "kernel/part_" in one[0]]
    assert [shape for _, shape, _ in pieces] == [[392, 128], [392, 128]]
    assert {device.split("/device")[0] for _, _, device in pieces} == {
        f"/job:ps/replica:0/task:{server}" for server in range(SERVERS)
    }
    assert len(run.result["variables"]) == 5
    assert all(device.startswith("/job:ps/") for _, _, device in run.result["variables"])


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
