"""The programs of notebook 12: every split trains to the weights of the undivided network."""

import numpy as np
import pytest
from scipy.signal import correlate

from distlab import launch, programs
from distlab.simulate import Run, World

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_job")]

TOLERANCE = 1e-5
PROGRAM = programs.FOLDER / "12_model_parallelism" / "spatial_split.py"
spatial = programs.module(PROGRAM)


def split(ranks: int, image: np.ndarray, kernels: list[np.ndarray], wanted: np.ndarray) -> Run:
    """The program on the virtual cluster."""
    inputs = list(zip(spatial.tiles_of(image, ranks), spatial.tiles_of(wanted, ranks), strict=True))
    return World(ranks).run(lambda rank, own: spatial.convolve_tiles(rank, own[0], kernels, own[1]), inputs)


@pytest.mark.parametrize(("ranks", "height", "width", "kernel"), [(1, 13, 17, 3), (4, 13, 17, 3), (6, 23, 11, 5)])
def test_tiles_of_any_size_give_the_convolutions_of_the_whole_image_by_scipy(
    ranks: int, height: int, width: int, kernel: int
) -> None:
    image, kernels, wanted = spatial.problem(height, width, kernel)
    results = split(ranks, image, kernels, wanted).results
    for number, weights in enumerate(kernels):
        convolved = np.zeros((height, width, weights.shape[3]))
        for channel, output in np.ndindex(weights.shape[2:]):
            convolved[:, :, output] += correlate(image[:, :, channel], weights[:, :, channel, output], "same")
        image = np.maximum(convolved, 0) if number == 0 else convolved
    np.testing.assert_allclose(spatial.together([tile for tile, _ in results]), image, atol=1e-12)


def test_tiles_over_mpi_equal_the_whole_image() -> None:
    how = {"ranks": 4, "seconds": 600, "result": True, "echo": False}
    found = launch.mpirun(PROGRAM, "--height", 61, "--width", 47, **how).result
    assert found["difference"] <= TOLERANCE and found["gradients_difference"] <= TOLERANCE
    assert found["tiles"] == [[31, 24], [31, 23], [30, 24], [30, 23]]
    # As many bytes as on the virtual cluster.
    assert found["bytes_sent"] == split(4, *spatial.problem(61, 47, 5)).bytes_sent_by_rank.tolist()
