"""The programs of notebook 12: every split trains to the weights of the undivided network."""

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from scipy.signal import correlate

from distlab import launch, programs
from distlab.simulate import World

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_job")]

TOLERANCE = 1e-5
CHAPTER = Path(__file__).parents[2] / "notebooks/programs/12_model_parallelism"
RANKS = 4


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
