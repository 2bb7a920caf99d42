"""A convolution over one large image whose tiles lie on different ranks.

    spatial = programs.module("spatial_split.py")
    image, kernels, wanted = spatial.problem(301, 203)
    tiles = list(zip(spatial.tiles_of(image, 4), spatial.tiles_of(wanted, 4)))
    World(4).run(lambda on, own: spatial.convolve_tiles(on, own[0], kernels, own[1]), tiles)

A module for notebook 12. Two convolutions with a ReLU between them, and the gradient of a loss
by both kernels. Borders are exchanged, not the image.
"""

from distlab import collectives
from distlab.simulate import Rank

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view


def grid(ranks: int) -> tuple[int, int]:
    """Rows and columns of tiles, as square as possible: 2 × 2 for 4 ranks, 2 × 3 for 6."""
    rows = max(number for number in range(1, int(ranks**0.5) + 1) if ranks % number == 0)
    return rows, ranks // rows


def tiles_of(image: np.ndarray, ranks: int) -> list[np.ndarray]:
    """The tiles of an image (height, width, …), one for each rank, row by row."""
    rows, columns = grid(ranks)
    bands = np.array_split(image, rows)
    return [tile for band in bands for tile in np.array_split(band, columns, axis=1)]


def together(tiles: list[np.ndarray]) -> np.ndarray:
    """The image that `tiles_of` cut."""
    rows, columns = grid(len(tiles))
    bands = [tiles[row * columns :][:columns] for row in range(rows)]
    return np.concatenate([np.concatenate(band, axis=1) for band in bands])


async def with_halo(rank: Rank, tile: np.ndarray, halo: int) -> np.ndarray:
    """The tile (h, w, c) with `halo` pixels of its neighbours; beyond the edge they are 0.

    Columns go left and right, then rows, longer by now, up and down: so corners arrive too.
    """
    rows, columns = grid(rank.size)
    row, column = divmod(rank.index, columns)
    for axis, number, count, stride in ((1, column, columns, 1), (0, row, rows, columns)):
        before = rank.index - stride if number > 0 else None
        after = rank.index + stride if number < count - 1 else None
        length = tile.shape[axis]
        if before is not None:
            await rank.send(before, np.take(tile, range(halo), axis))
        if after is not None:
            await rank.send(after, np.take(tile, range(length - halo, length), axis))
        nothing = np.zeros_like(np.take(tile, range(halo), axis))
        first = nothing if before is None else await rank.receive(before)
        last = nothing if after is None else await rank.receive(after)
        tile = np.concatenate([first, tile, last], axis)
    return tile


def convolve(padded: np.ndarray, kernel: np.ndarray) -> np.ndarray:
    """(h + 2k, w + 2k, c) with a kernel (2k + 1, 2k + 1, c, filters) to (h, w, filters)."""
    windows = sliding_window_view(padded, kernel.shape[:2], axis=(0, 1))
    return np.tensordot(windows, kernel, axes=((3, 4, 2), (0, 1, 2)))


def kernel_gradient(padded: np.ndarray, gradient: np.ndarray, size: int) -> np.ndarray:
    """The gradient by a kernel of `size` × `size` from that by the outputs (h, w, filters)."""
    windows = sliding_window_view(padded, (size, size), axis=(0, 1))
    return np.tensordot(windows, gradient, axes=((0, 1), (0, 1))).transpose(1, 2, 0, 3)


async def convolve_tiles(
    rank: Rank, tile: np.ndarray, kernels: list[np.ndarray], wanted: np.ndarray
) -> tuple[np.ndarray, list[np.ndarray]]:
    """This rank's tile of the outputs, and the gradients of Σ(outputs − wanted)²/2 by kernels.

    The outputs' gradient needs a halo, too: a pixel of the first layer acts on outputs of the
    neighbours.
    """
    size = len(kernels[0])
    padded = await with_halo(rank, tile, size // 2)
    hidden = np.maximum(convolve(padded, kernels[0]), 0)
    hidden_padded = await with_halo(rank, hidden, size // 2)
    outputs = convolve(hidden_padded, kernels[1])

    gradient = outputs - wanted
    own_second = kernel_gradient(hidden_padded, gradient, size)
    # By a convolution's inputs it is a convolution with the turned kernel, channels exchanged.
    turned = kernels[1][::-1, ::-1].transpose(0, 1, 3, 2)
    by_hidden = convolve(await with_halo(rank, gradient, size // 2), turned) * (hidden > 0)
    own_first = kernel_gradient(padded, by_hidden, size)
    # Every tile has used the same kernels: their gradients add up, as in data parallelism.
    first = await collectives.ring_all_reduce(rank, own_first)
    return outputs, [first, await collectives.ring_all_reduce(rank, own_second)]


def problem(height: int, width: int, kernel: int = 5) -> tuple:
    """A random image of three channels, two kernels (4 and 2 filters), the wanted outputs."""
    normal = np.random.default_rng(12).normal
    image = normal(size=(height, width, 3))
    shapes = ((kernel, kernel, 3, 4), (kernel, kernel, 4, 2))
    kernels = [0.1 * normal(size=shape) for shape in shapes]
    return image, kernels, normal(size=(height, width, 2))
