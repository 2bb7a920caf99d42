"""The program that measures images per second counts those of all processes, together and apart."""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from distlab import launch
from tests.prepared_runs import PreparedRuns
from tests.programs.chapter_programs import chapter

pytestmark = pytest.mark.slow

SMALL = ["--images", 96, "--batch", 32, "--epochs", 2]


@pytest.fixture(scope="module")
def program(root: Path) -> Path:
    return root / "notebooks/programs/11_scaling_and_profiling/measure_throughput.py"


def measured(program: Path, way: str, *arguments: object, count: int = 2) -> dict:
    """What `count` processes wrote; skips the test where Horovod is missing."""
    settings = {"echo": False, "result": True, "seconds": 900, "start_seconds": 600}
    if way != "horovod":
        return launch.tensorflow(program, "--way", way, *SMALL, *arguments, workers=count, **settings).result
    if problem := launch.horovod_problem():
        pytest.skip(problem)
    return launch.horovodrun(program, "--way", way, *SMALL, *arguments, ranks=count, **settings).result


@pytest.mark.parametrize("arguments", [(), ("--apart",)], ids=["together", "apart"])
@pytest.mark.parametrize("way", ["horovod", "multi_worker"])
def test_two_processes_with_a_core_each_count_the_images_of_both(
    program: Path, way: str, arguments: tuple[str, ...]
) -> None:
    result = measured(program, way, "--cores", 1, *arguments)
    assert (result["replicas"], result["cores"], result["apart"]) == (2, 1, bool(arguments))
    assert result["images"] == [2 * 96] * 3
    assert len(result["of_epochs"]) == 2
    assert min(result["of_epochs"]) <= result["images_per_second"] <= max(result["of_epochs"])
    assert 0 < result["core_share"] < 1.5


@pytest.mark.parametrize("way", ["lecture", "ours"])
def test_one_process_counts_its_images(program: Path, way: str) -> None:
    result = measured(program, way, "--model", "cnn", count=1)
    assert (result["way"], result["model"], result["batch"], result["replicas"]) == (way, "cnn", 32, 1)
    assert result["images"] == [96] * 3
    assert result["images_per_second"] > 0


def test_both_adams_follow_the_same_formula(program: Path) -> None:
    with chapter(program.parent) as programs:
        fused_adam = programs("measure_throughput").fused_adam
    gradients = np.random.default_rng(3).normal(size=(20, 50)).astype(np.float32)
    trained = []
    for optimizer in (tf.keras.optimizers.Adam(0.004), fused_adam(0.004)):
        weights = tf.Variable(tf.ones(50))
        for gradient in gradients:
            optimizer.apply_gradients([(tf.constant(gradient), weights)])
        trained.append(weights.numpy())
    np.testing.assert_allclose(*trained, rtol=1e-5)
    first, second, weights = np.zeros(50), np.zeros(50), np.ones(50)
    for step, gradient in enumerate(gradients.astype(np.float64), start=1):  # Kingma and Ba 2015, the end of section 2
        first, second = 0.9 * first + 0.1 * gradient, 0.999 * second + 0.001 * gradient**2
        rate = 0.004 * np.sqrt(1 - 0.999**step) / (1 - 0.9**step)
        weights -= rate * first / (np.sqrt(second) + 1e-7)
    np.testing.assert_allclose(trained[1], weights, rtol=1e-5)


def test_the_fused_adam_is_one_operation(program: Path) -> None:
    with chapter(program.parent) as programs:
        optimizer, weights = programs("measure_throughput").fused_adam(0.004), tf.Variable(tf.ones(50))

    @tf.function
    def update(gradient: tf.Tensor) -> None:
        optimizer.apply_gradients([(gradient, weights)])

    kinds = [operation.type for operation in update.get_concrete_function(tf.ones(50)).graph.get_operations()]
    assert kinds.count("ResourceApplyAdam") == 1
    assert "AssignSubVariableOp" not in kinds


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--way", "ours", "--apart"], "--apart is for --way multi_worker and --way horovod"),
        (["--way", "ours", "--cores", "10000"], "the cores that this process may use"),
        (["--way", "ours", "--batch", "64", "--images", "63"], "--images is at least --batch"),
    ],
)
def test_arguments_that_make_no_sense_end_with_the_reason(
    runs: PreparedRuns, program: Path, arguments: list[str], message: str
) -> None:
    finished = runs.run(program, *arguments)
    assert finished.status == 2
    assert message in finished.output
