"""The programs of notebook 12: every split trains to the weights of the undivided network."""

import json
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


def alone(runs: PreparedRuns, folder: Path, program: str, *arguments: object) -> dict:
    """The result of a program that runs as one process."""
    done = runs.run(CHAPTER / program, *arguments, "--result", folder / "result.json")
    assert done.status == 0, done.output[-2000:]
    return json.loads((folder / "result.json").read_text())


def test_every_layout_trains_to_the_weights_of_one_device_and_each_device_has_its_part(
    runs: PreparedRuns, tmp_path: Path
) -> None:
    split = alone(runs, tmp_path, "tensor_split.py", "--devices", 8, "--steps", 20)
    assert split["moved"] > 1000 * TOLERANCE
    for run in split["runs"]:
        assert run["difference"] <= TOLERANCE, run
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


def test_every_pipeline_trains_to_the_weights_of_the_undivided_network_with_as_many_tapes_as_the_formula_says(
    runs: PreparedRuns, tmp_path: Path
) -> None:
    arguments = ["--stages", 2, 3, 4, "--micro-batches", 6, "--steps", 10]
    staged = alone(runs, tmp_path, "pipeline_stages.py", *arguments)
    assert staged["moved"] > 1000 * TOLERANCE
    assert {(run["stages"], run["schedule"]) for run in staged["runs"]} == {
        (stages, schedule) for stages in (2, 3, 4) for schedule in ("gpipe", "1f1b")
    }
    for run in staged["runs"]:
        assert run["difference"] <= TOLERANCE, run
        held = [activations_held(run["schedule"], run["stages"], 6, stage) for stage in range(run["stages"])]
        assert run["most_tapes"] == held


@pytest.fixture(scope="module")
def spatial() -> ModuleType:
    return programs.module(CHAPTER / "spatial_split.py")


@pytest.mark.parametrize(("ranks", "height", "width", "kernel"), [(1, 13, 17, 3), (4, 13, 17, 3), (6, 23, 11, 5)])
def test_tiles_of_any_size_give_the_convolutions_of_the_whole_image_by_scipy(
    ranks: int, height: int, width: int, kernel: int, spatial: ModuleType
) -> None:
    image, kernels, wanted = spatial.problem(height, width, kernel)
    inputs = list(zip(spatial.tiles_of(image, ranks), spatial.tiles_of(wanted, ranks), strict=True))
    run = World(ranks).run(lambda rank, own: spatial.convolve_tiles(rank, own[0], kernels, own[1]), inputs)
    for number, weights in enumerate(kernels):
        convolved = np.zeros((height, width, weights.shape[3]))
        for channel, output in np.ndindex(weights.shape[2:]):
            convolved[:, :, output] += correlate(image[:, :, channel], weights[:, :, channel, output], "same")
        image = np.maximum(convolved, 0) if number == 0 else convolved
    np.testing.assert_allclose(spatial.together([tile for tile, _ in run.results]), image, atol=1e-12)


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
