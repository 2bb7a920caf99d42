"""A convolution over one large image whose tiles lie on different ranks; borders are exchanged, not the image.

On a laptop, four ranks over MPI, by hand and with the course's launcher:

    mpirun -np 4 python spatial_split.py --height 301 --width 203 --result result.json
    distlab launch --with mpirun --workers 4 spatial_split.py -- --height 301 --width 203 --result result.json

Under Slurm, in a batch script or after `salloc --nodes=2 --ntasks-per-node=4`:

    srun --mpi=pmix python spatial_split.py --height 1024 --width 1024 --result result.json

Two convolutions with a ReLU between them, and the gradient of a loss by both kernels. Every rank has one tile of the
image; sizes need not divide. `convolve_tiles` runs on the virtual cluster as well. Rank 0 computes the same on the
whole image and writes how far the outputs and the gradients differ, and the bytes that ranks sent.
"""

import argparse
import json
from pathlib import Path

from distlab import checks, collectives
from distlab.simulate import Rank, run_over_mpi

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Convolve an image in tiles and compare with the whole.")
    parser.add_argument("--height", type=int, default=301)
    parser.add_argument("--width", type=int, default=203)
    parser.add_argument("--result", type=Path, help="JSON file that rank 0 writes")
    return parser.parse_args()


def grid(ranks: int) -> tuple[int, int]:
    """Rows and columns of tiles, as square as possible: 2 × 2 for 4 ranks, 2 × 3 for 6."""
    rows = max(number for number in range(1, int(ranks**0.5) + 1) if ranks % number == 0)
    return rows, ranks // rows


def tiles_of(image: np.ndarray, ranks: int) -> list[np.ndarray]:
    """The tiles of an image (height, width, …), one for each rank, row by row; they differ by at most a pixel."""
    rows, columns = grid(ranks)
    return [tile for band in np.array_split(image, rows) for tile in np.array_split(band, columns, axis=1)]


def together(tiles: list[np.ndarray]) -> np.ndarray:
    """The image that `tiles_of` cut."""
    rows, columns = grid(len(tiles))
    return np.concatenate([np.concatenate(tiles[row * columns :][:columns], axis=1) for row in range(rows)])


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
    """The gradient by the kernel from that by the outputs (h, w, filters), for a kernel of `size` × `size`."""
    windows = sliding_window_view(padded, (size, size), axis=(0, 1))
    return np.tensordot(windows, gradient, axes=((0, 1), (0, 1))).transpose(1, 2, 0, 3)


async def convolve_tiles(
    rank: Rank, tile: np.ndarray, kernels: list[np.ndarray], wanted: np.ndarray
) -> tuple[np.ndarray, list[np.ndarray]]:
    """This rank's tile of the outputs, and the gradients of Σ(outputs − wanted)²/2 by both kernels, the whole image's.

    The outputs' gradient needs a halo, too: a pixel of the first layer acts on outputs of the neighbours.
    """
    size = len(kernels[0])
    padded = await with_halo(rank, tile, size // 2)
    hidden = np.maximum(convolve(padded, kernels[0]), 0)
    hidden_padded = await with_halo(rank, hidden, size // 2)
    outputs = convolve(hidden_padded, kernels[1])

    gradient = outputs - wanted
    own_second = kernel_gradient(hidden_padded, gradient, size)
    # The gradient by a convolution's inputs is a convolution with the kernel turned by half, channels exchanged.
    turned = kernels[1][::-1, ::-1].transpose(0, 1, 3, 2)
    by_hidden = convolve(await with_halo(rank, gradient, size // 2), turned) * (hidden > 0)
    own_first = kernel_gradient(padded, by_hidden, size)
    # Every tile has used the same kernels, so that their gradients add up, as in data parallelism.
    return outputs, [await collectives.ring_all_reduce(rank, own) for own in (own_first, own_second)]


def problem(height: int, width: int, kernel: int = 5) -> tuple[np.ndarray, list[np.ndarray], np.ndarray]:
    """A random image of three channels, two kernels (4 and 2 filters), and the outputs that are wanted."""
    numbers = np.random.default_rng(12)
    image = numbers.normal(size=(height, width, 3))
    kernels = [0.1 * numbers.normal(size=(kernel, kernel, *channels)) for channels in ((3, 4), (4, 2))]
    return image, kernels, numbers.normal(size=(height, width, 2))


def main() -> None:
    """Convolve in tiles; let rank 0 compare with the whole image."""
    from mpi4py import MPI

    options, world = parse(), MPI.COMM_WORLD
    image, kernels, wanted = problem(options.height, options.width)
    own = tiles_of(image, world.size)[world.rank], kernels, tiles_of(wanted, world.size)[world.rank]
    run = run_over_mpi(lambda rank, inputs: convolve_tiles(rank, *inputs), own)
    tile, gradients = run.result
    tiles, sent = world.gather(tile), world.gather(run.bytes_sent)
    if world.rank == 0:
        # One rank alone has no neighbours: its tile is the image.
        alone = run_over_mpi(lambda rank: convolve_tiles(rank, image, kernels, wanted), communicator=MPI.COMM_SELF)
        whole, whole_gradients = alone.result
        far = checks.largest_difference([together(tiles)], [whole])
        gradients_far = checks.largest_difference(gradients, whole_gradients)
        print(f"{world.size} tiles of {options.height} × {options.width}: outputs differ by {far:.1e}", flush=True)
        if options.result:
            shapes = [list(part.shape[:2]) for part in tiles]
            found = {"difference": far, "gradients_difference": gradients_far, "bytes_sent": sent, "tiles": shapes}
            options.result.write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
