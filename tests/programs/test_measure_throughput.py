"""The program that measures images per second counts those of all processes; what its fused Adam computes."""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from distlab import launch
from tests.programs.chapter_programs import chapter

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_job")]

SMALL = ["--images", 96, "--batch", 32, "--epochs", 2]


@pytest.fixture(scope="module")
def program(root: Path) -> Path:
    return root / "notebooks/programs/11_scaling_and_profiling/measure_throughput.py"


@pytest.mark.parametrize("way", ["horovod", "multi_worker"])
def test_two_processes_with_a_core_each_count_the_images_of_both(program: Path, way: str) -> None:
    if way == "horovod" and (problem := launch.horovod_problem()):
        pytest.skip(problem)
    how = {"echo": False, "result": True, "seconds": 900, "start_seconds": 600}
    start, count = (launch.horovodrun, "ranks") if way == "horovod" else (launch.tensorflow, "workers")
    result = start(program, "--way", way, *SMALL, "--cores", 1, **{count: 2}, **how).result
    assert (result["replicas"], result["cores"]) == (2, 1)
    assert result["images"] == [2 * 96] * 3
    assert min(result["of_epochs"]) <= result["images_per_second"] <= max(result["of_epochs"])


def test_the_fused_adam_is_adam(program: Path) -> None:
    with chapter(program.parent) as programs:
        optimizer, weights = programs("measure_throughput").fused_adam(0.004), tf.Variable(tf.ones(50))
    gradients = np.random.default_rng(3).normal(size=(20, 50)).astype(np.float32)
    for gradient in gradients:
        optimizer.apply_gradients([(tf.constant(gradient), weights)])
    first, second, expected = np.zeros(50), np.zeros(50), np.ones(50)
    for step, gradient in enumerate(gradients.astype(np.float64), start=1):  # Kingma and Ba 2015, the end of section 2
        first, second = 0.9 * first + 0.1 * gradient, 0.999 * second + 0.001 * gradient**2
        rate = 0.004 * np.sqrt(1 - 0.999**step) / (1 - 0.9**step)
        expected -= rate * first / (np.sqrt(second) + 1e-7)
    np.testing.assert_allclose(weights.numpy(), expected, rtol=1e-5)
