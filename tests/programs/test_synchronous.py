"""`synchronous.py` of notebook 08 as two real workers, one of them slow."""

from pathlib import Path

import numpy as np
import pytest

from distlab import launch

GRADIENTS, SECONDS, SLOW_SECONDS, WORKERS = 20, 0.05, 0.3, 2
LEARNING_RATE = 0.03

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_job")]


@pytest.fixture(scope="module")
def result(root: Path) -> dict:
    """One launch for all tests."""
    arguments = ["--gradients", GRADIENTS, "--seconds", SECONDS, "--slow-seconds", SLOW_SECONDS]
    arguments += ["--learning-rate", LEARNING_RATE]
    program = root / "notebooks/programs/08_other_strategies/synchronous.py"
    how = {"seconds": 900, "start_seconds": 600, "echo": False, "result": True}
    return launch.tensorflow(program, *arguments, workers=WORKERS, **how).result


@pytest.fixture(scope="module")
def serial() -> list[tuple[int, float]]:
    """Gradients applied and loss of one device that adds the gradients of both workers' batches, every tenth."""
    import tensorflow as tf  # here, since it takes seconds to start

    from distlab import data, models

    images, labels = (part[:1280] for part in data.load("digits").train)
    tf.keras.utils.set_random_seed(8)
    model = models.mlp(dropout=0.0)
    variables = model.trainable_variables

    def mean_loss(part: slice) -> tf.Tensor:
        logits = model(images[part])
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels[part], logits))

    curve = [(0, float(mean_loss(slice(None))))]
    for step in range(GRADIENTS // WORKERS):
        with tf.GradientTape() as tape:
            batches = [slice(32 * number, 32 * (number + 1)) for number in range(WORKERS * step, WORKERS * (step + 1))]
            total = sum(mean_loss(batch) for batch in batches)
        for variable, gradient in zip(variables, tape.gradient(total, variables), strict=True):
            variable.assign_sub(LEARNING_RATE * gradient)
        if (step + 1) % 5 == 0:
            curve.append((WORKERS * (step + 1), float(mean_loss(slice(None)))))
    return curve


@pytest.mark.parametrize("name", ["equal", "slow"])
def test_the_loss_is_that_of_one_device_however_slow_a_worker_is(result: dict, serial: list, name: str) -> None:
    curve = result["runs"][name]["curve"]
    assert [gradients for _, gradients, _ in curve] == [gradients for gradients, _ in serial]
    np.testing.assert_allclose([loss for _, _, loss in curve], [loss for _, loss in serial], atol=1e-4)
    assert serial[-1][1] < 0.9 * serial[0][1]


@pytest.mark.parametrize("name", ["equal", "slow"])
def test_every_worker_makes_all_steps(result: dict, name: str) -> None:
    run = result["runs"][name]
    assert run["steps"] == len(run["time"]) == GRADIENTS // WORKERS
    assert run["time"] == sorted(run["time"])


def test_no_step_is_shorter_than_the_slow_worker_s(result: dict) -> None:
    run = result["runs"]["slow"]
    assert run["seconds_per_gradient"] == [SECONDS, SLOW_SECONDS]
    assert run["time"][-1] >= SLOW_SECONDS * run["steps"]
