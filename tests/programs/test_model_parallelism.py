"""The programs of notebook 12: every split trains to the weights of the undivided network."""

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from scipy.signal import correlate

from distlab import frameworks, launch, programs
from distlab.model_parallel.pipelines import activations_held
from distlab.model_parallel.sharded_optimizers import BytesPerParameter, bytes_sent, model_state_bytes
from distlab.simulate import World
from tests.prepared_runs import PreparedRuns

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_job")]

TOLERANCE = 1e-5
CHAPTER = Path(__file__).parents[2] / "notebooks/programs/12_model_parallelism"
RANKS = 4


@pytest.fixture(scope="module")
def alone(runs: PreparedRuns, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., dict]:
    """Run a program as one process; its result."""

    def run(program: str, *arguments: object) -> dict:
        file = tmp_path_factory.mktemp("result") / "result.json"
        done = runs.run(CHAPTER / program, *arguments, "--result", file)
        assert done.status == 0, done.output[-2000:]
        return json.loads(file.read_text())

    return run


# Inside the layers --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def split(alone: Callable[..., dict]) -> dict:
    return alone("tensor_split.py", "--devices", 8, "--steps", 20)


def test_every_layout_trains_to_the_weights_of_one_device(split: dict) -> None:
    assert split["moved"] > 1000 * TOLERANCE
    for run in split["runs"]:
        assert run["difference"] <= TOLERANCE, run


def test_each_device_has_its_part_of_every_tensor(split: dict) -> None:
    found = {(run["split"], run["data"], run["model"]): run["shapes"] for run in split["runs"]}
    wanted = {}
    wanted["data", 8, 1] = [8, 784], [[784, 80], [80, 16]]
    wanted["column, row", 1, 8] = [64, 784], [[784, 10], [10, 16]]
    wanted["column, column", 1, 8] = [64, 784], [[784, 10], [80, 2]]
    for rows, columns in ((2, 4), (4, 2)):
        wanted["data × model", rows, columns] = [64 // rows, 784], [[784, 80 // columns], [80 // columns, 16]]
    assert found == {key: {"images": images, "weights": weights} for key, (images, weights) in wanted.items()}


def test_a_mesh_in_pytorch_trains_to_the_weights_of_the_undivided_network() -> None:
    if reason := frameworks.problem("torch"):
        pytest.skip(reason)
    run = launch.torchrun(CHAPTER / "mesh.py", ranks=RANKS, python=frameworks.python("torch"), echo=False)
    assert float(run.output["rank 0"].split()[-1]) <= TOLERANCE


# By layers ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def staged(alone: Callable[..., dict]) -> dict:
    return alone("pipeline_stages.py", "--stages", 2, 3, 4, "--micro-batches", 6, "--steps", 10)


def test_every_pipeline_trains_to_the_weights_of_the_undivided_network(staged: dict) -> None:
    assert staged["moved"] > 1000 * TOLERANCE
    assert {(run["stages"], run["schedule"]) for run in staged["runs"]} == {
        (stages, schedule) for stages in (2, 3, 4) for schedule in ("gpipe", "1f1b")
    }
    for run in staged["runs"]:
        assert run["difference"] <= TOLERANCE, run


def test_stages_hold_as_many_tapes_as_the_formula_says(staged: dict) -> None:
    for run in staged["runs"]:
        p = run["stages"]
        assert run["most_tapes"] == [activations_held(run["schedule"], p, 6, stage) for stage in range(p)]


# On parts of an image -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def spatial() -> ModuleType:
    return programs.module(CHAPTER / "spatial_split.py")


@pytest.mark.parametrize(("ranks", "height", "width", "kernel"), [(1, 13, 17, 3), (4, 13, 17, 3), (6, 23, 11, 5)])
def test_tiles_of_any_size_give_the_convolutions_of_the_whole_image(
    ranks: int, height: int, width: int, kernel: int, spatial: ModuleType
) -> None:
    image, kernels, wanted = spatial.problem(height, width, kernel)
    inputs = list(zip(spatial.tiles_of(image, ranks), spatial.tiles_of(wanted, ranks), strict=True))

    run = World(ranks).run(lambda rank, own: spatial.convolve_tiles(rank, own[0], kernels, own[1]), inputs)
    outputs = spatial.together([tile for tile, _ in run.results])
    np.testing.assert_allclose(outputs, convolved(image, kernels), atol=1e-12)


def convolved(image: np.ndarray, kernels: list[np.ndarray]) -> np.ndarray:
    """The same by SciPy, on the whole image."""
    for number, kernel in enumerate(kernels):
        image = np.stack(
            [
                sum(
                    correlate(image[:, :, channel], kernel[:, :, channel, output], "same")
                    for channel in range(image.shape[2])
                )
                for output in range(kernel.shape[3])
            ],
            axis=2,
        )
        image = np.maximum(image, 0) if number == 0 else image
    return image


def test_tiles_over_mpi_equal_the_whole_image(spatial: ModuleType) -> None:
    arguments = ["--height", 61, "--width", 47]
    how = {"seconds": 600, "result": True, "echo": False}
    found = launch.mpirun(CHAPTER / "spatial_split.py", *arguments, ranks=RANKS, **how).result
    assert found["difference"] <= TOLERANCE and found["gradients_difference"] <= TOLERANCE
    assert found["tiles"] == [[31, 24], [31, 23], [30, 24], [30, 23]]
    # As many bytes as on the virtual cluster.
    image, kernels, wanted = spatial.problem(61, 47, 5)
    inputs = list(zip(spatial.tiles_of(image, RANKS), spatial.tiles_of(wanted, RANKS), strict=True))
    run = World(RANKS).run(lambda rank, own: spatial.convolve_tiles(rank, own[0], kernels, own[1]), inputs)
    assert found["bytes_sent"] == run.bytes_sent_by_rank.tolist()


# Optimizer states ---------------------------------------------------------------------------------------------------


def test_sharded_optimizers_over_mpi_train_as_one_process_does() -> None:
    how = {"seconds": 600, "result": True, "echo": False}
    arguments = ["--steps", 4]
    found = launch.mpirun(CHAPTER / "shard_optimizer.py", *arguments, ranks=RANKS, **how).result
    parameters = found["parameters"]
    assert parameters == 785 * 64 + 65 * 10
    assert found["moved"] > 100 * TOLERANCE
    for stage, each in found["stages"].items():
        assert each["difference"] <= TOLERANCE
        wanted = model_state_bytes(parameters, RANKS, int(stage), BytesPerParameter(8, 8, 16))
        for held in each["bytes_held"]:
            # Layers whose size is no multiple of the ranks leave some an element more.
            assert sum(held.values()) == pytest.approx(wanted, abs=2 * 32)
        np.testing.assert_allclose(each["bytes_sent"], 4 * bytes_sent(8 * parameters, RANKS, int(stage)), rtol=1e-3)
