"""The programs of notebook 14: in every framework, ranks train the weights of one process of Keras."""

import json
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest

from distlab import checks, frameworks, launch, models, programs
from distlab.runtime import processes
from tests.prepared_runs import PreparedRuns

# isort: split
import tensorflow as tf

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_job")]

CHAPTER = frameworks.PROGRAMS
STEPS, GLOBAL_BATCH, RATE = 20, 48, 0.02
LIMITS = {"echo": False, "result": True, "seconds": 900, "start_seconds": 600}

layouts = programs.module(CHAPTER / "layouts.py")


def needs(part: str, problem: str | None = None) -> pytest.MarkDecorator:
    """Skips a test where a framework is not installed, or where there is another problem."""
    problem = frameworks.problem(part) or problem
    return pytest.mark.skipif(problem is not None, reason=str(problem))


@pytest.fixture(scope="module")
def start(runs: PreparedRuns, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of first weights and images."""
    file = tmp_path_factory.mktemp("frameworks") / "start.npz"
    assert runs.run(CHAPTER / "start.py", file).status == 0
    return file


@pytest.fixture(scope="module")
def serial(start: Path) -> tuple[list[np.ndarray], list[float]]:
    """Weights and losses after Keras's own loop over the global batches, in this process."""
    with np.load(start) as arrays:
        images, labels = arrays["images"], arrays["labels"]
    model = models.cnn(filters=16)
    model.set_weights(layouts.read(start))
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(tf.keras.optimizers.SGD(RATE, momentum=0.9), loss)
    batches = [slice(first, first + GLOBAL_BATCH) for first in range(0, STEPS * GLOBAL_BATCH, GLOBAL_BATCH)]
    losses = [float(model.train_on_batch(images[batch], labels[batch])) for batch in batches]
    # Gradients that are summed, or of all images on each rank, would be seen.
    assert checks.largest_difference(layouts.read(start), model.get_weights()) > 1000 * checks.TOLERANCE
    return model.get_weights(), losses


def trained(start: Path, launcher: str, program: str, *arguments: object, part: str, **how: object) -> tuple:
    """The result of a program that a function of `launch` starts, and its weights."""
    file, how = start.with_name("weights.npz"), LIMITS | {"python": frameworks.python(part)} | how
    result = getattr(launch, launcher)(CHAPTER / program, start, *arguments, "--weights", file, **how).result
    return result, layouts.read(file)


def by_torchrun(start: Path, program: str, *arguments: object, ranks: int) -> tuple:
    share = ["--batch", GLOBAL_BATCH // ranks, "--learning-rate", RATE / ranks]
    return trained(start, "torchrun", program, *share, *arguments, part="torch", ranks=ranks)


def test_the_program_in_tensorflow_is_that_loop(runs: PreparedRuns, start: Path, serial: tuple) -> None:
    assert runs.run(CHAPTER / "train_tensorflow.py", start, "--weights", start.with_name("serial.npz")).status == 0
    checks.assert_equal_weights(layouts.read(start.with_name("serial.npz")), serial[0])


@needs("torch")
@pytest.mark.parametrize(("program", "ranks"), [("train_ddp.py", 2), ("train_fsdp.py", 3)])
def test_ranks_of_pytorch(start: Path, serial: tuple, program: str, ranks: int) -> None:
    result, weights = by_torchrun(start, program, ranks=ranks)
    assert (result["ranks"], result["steps"], len(result["losses"])) == (ranks, STEPS, STEPS)
    checks.assert_equal_weights(weights, serial[0])
    network = sum(weight.nbytes for weight in weights)
    held = np.array([[rank["parameters"], rank["optimizer"]] for rank in result["held"]])
    if program == "train_ddp.py":
        assert (held == network).all()
    else:  # what all ranks hold together is the network once
        assert held.sum(axis=0).tolist() == [network] * 2
        assert held.max() < 0.6 * network


@needs("torch")
def test_a_resumed_run_is_the_uninterrupted_one_on_another_number_of_ranks(start: Path, tmp_path: Path) -> None:
    by_torchrun(start, "train_fsdp.py", "--folder", tmp_path, ranks=2)
    result, resumed = by_torchrun(start, "train_fsdp.py", "--folder", tmp_path, "--resume", "--epochs", 2, ranks=1)
    assert result["steps"] == STEPS
    _, uninterrupted = by_torchrun(start, "train_fsdp.py", "--epochs", 2, ranks=1)
    checks.assert_equal_weights(resumed, uninterrupted)


@needs("deepspeed")
def test_every_stage_of_zero(start: Path, serial: tuple) -> None:
    arguments = [start, "--stages", 0, 1, 2, 3, "--weights", start.with_name("zero.npz")]
    how = LIMITS | {"python": frameworks.python("deepspeed")}
    result = launch.torchrun(CHAPTER / "train_deepspeed.py", *arguments, ranks=2, **how).result
    network = sum(weight.nbytes for weight in serial[0])
    for stage in range(4):
        checks.assert_equal_weights(layouts.read(start.with_name(f"zero_{stage}.npz")), serial[0])
        held = result[str(stage)]["held"][0]
        assert held["optimizer"] == pytest.approx(network / (2 if stage else 1), rel=1e-3)
        assert held["parameters"] == pytest.approx(network / (2 if stage == 3 else 1), rel=1e-3)


CPU = {"JAX_PLATFORMS": "cpu"}
TWO_DEVICES = CPU | {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
DIVIDED = ("--shard-weights", "--distributed")


@needs("jax")
@pytest.mark.parametrize(
    ("launcher", "options", "how"),
    [("alone", (), {"environment": TWO_DEVICES}), ("mpirun", DIVIDED, {"environment": CPU, "ranks": 2})],
    ids=["one process", "two processes"],
)
def test_two_devices_of_jax(start: Path, serial: tuple, launcher: str, options: tuple, how: dict) -> None:
    result, weights = trained(start, launcher, "train_jax.py", *options, part="jax", **how)
    checks.assert_equal_weights(weights, serial[0])
    part = sum(weight.nbytes for weight in weights) // (2 if options else 1)
    assert result["held"] == [{"parameters": part, "optimizer": part}] * 2
    assert "all-gather" in result["collectives"] if options else result["collectives"] == ["all-reduce"]


@needs("mxnet")
@pytest.mark.parametrize(("servers", "options"), [(2, []), (1, ["--optimizer-on", "worker"])])
def test_workers_of_mxnet(start: Path, serial: tuple, servers: int, options: list[str]) -> None:
    result, weights = trained(start, "mxnet", "train_mxnet.py", *options, part="mxnet", workers=2, servers=servers)
    assert (result["ranks"], result["steps"], result["store"]) == (2, STEPS, "dist_sync")
    checks.assert_equal_weights(weights, serial[0])
    checks.assert_equal([result["losses"]], [serial[1]], "losses")


@needs("ray", launch.horovod_problem())
@pytest.mark.parametrize("way", ["RayExecutor", "TensorflowTrainer"])
def test_workers_of_ray_of_which_nothing_is_left(start: Path, serial: tuple, tmp_path: Path, way: str) -> None:
    weights, file, home = tmp_path / "weights.npz", tmp_path / "result.json", tmp_path / "home"
    home.mkdir()
    command = [str(frameworks.python("ray")), str(CHAPTER / "train_ray.py"), str(start), "--way", way]
    command += ["--weights", str(weights), "--result", str(file)]
    # Keras, which writes its settings there, has a folder of its own.
    variables = os.environ | {"HOME": str(home), "KERAS_HOME": str(tmp_path / "keras")}
    mark, pipes = processes.new_mark(), {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with tempfile.TemporaryDirectory(prefix="t-", dir="/tmp") as sockets:  # whose paths must be short
        try:
            program = processes.start(command, mark, env=variables | {"RAY_TMPDIR": sockets}, **pipes)
            output, _ = program.communicate(timeout=900)
            assert program.returncode == 0, output
            files = [file for file in home.rglob("*") if file.is_file()]
            assert [*processes.alive(mark), *Path(sockets).iterdir(), *files] == []
        finally:
            processes.end(mark)
    result = json.loads(file.read_text())
    assert (result["ranks"], result["steps"]) == (2, STEPS)
    checks.assert_equal_weights(layouts.read(weights), serial[0])
    checks.assert_equal([result["losses"]], [serial[1]], "losses")
