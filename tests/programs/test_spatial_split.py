"""`spatial_split.py` of notebook 12: tiles of any size give what the whole image does."""

import numpy as np
import pytest
from scipy.signal import correlate

from distlab import programs
from distlab.simulate import World

spatial = programs.module(programs.FOLDER / "12_model_parallelism" / "spatial_split.py")


@pytest.mark.parametrize(("ranks", "height", "width", "kernel"), [(1, 13, 17, 3), (4, 13, 17, 3), (6, 23, 11, 5)])
def test_tiles_of_any_size_give_the_convolutions_of_the_whole_image_by_scipy(
    ranks: int, height: int, width: int, kernel: int
) -> None:
    image, kernels, wanted = spatial.problem(height, width, kernel)
    inputs = list(zip(spatial.tiles_of(image, ranks), spatial.tiles_of(wanted, ranks), strict=True))
    results = World(ranks).run(lambda rank, own: spatial.convolve_tiles(rank, own[0], kernels, own[1]), inputs).results
    for number, weights in enumerate(kernels):
        convolved = np.zeros((height, width, weights.shape[3]))
        for channel, output in np.ndindex(weights.shape[2:]):
            convolved[:, :, output] += correlate(image[:, :, channel], weights[:, :, channel, output], "same")
        image = np.maximum(convolved, 0) if number == 0 else convolved
    np.testing.assert_allclose(spatial.together([tile for tile, _ in results]), image, atol=1e-12)
