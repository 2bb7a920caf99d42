"""A convolution over one large image whose tiles lie on different ranks.

On a laptop, four ranks over MPI; under Slurm in a batch script or after `salloc --nodes=2
--ntasks-per-node=4`:

    mpirun -np 4 python spatial_split.py --height 301 --width 203 --result result.json
    srun --mpi=pmix python spatial_split.py --height 1024 --width 1024 --result result.json

Two convolutions with a ReLU between them, and the gradient of a loss by both kernels. Borders
are exchanged, not the image. `convolve_tiles` runs on the virtual cluster as well. Rank 0
computes the same on the whole image and writes how far outputs and gradients differ.
"""

import argparse
import functools
import json
from pathlib import Path

from distlab import checks, collectives
from distlab.simulate import Rank, run_over_mpi

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


def main() -> None:
    """Convolve in tiles; let rank 0 compare with the whole image."""
    from mpi4py import MPI

    parser = argparse.ArgumentParser(description="Convolve an image in tiles.")
    parser.add_argument("--height", type=int, default=301)
    parser.add_argument("--width", type=int, default=203)
    parser.add_argument("--result", type=Path, help="JSON file that rank 0 writes")
    options, world = parser.parse_args(), MPI.COMM_WORLD
    image, kernels, wanted = problem(options.height, options.width)
    tile, own_wanted = (tiles_of(whole, world.size)[world.rank] for whole in (image, wanted))
    run = run_over_mpi(lambda rank: convolve_tiles(rank, tile, kernels, own_wanted))
    outputs, gradients = run.result
    tiles, sent = world.gather(outputs), world.gather(run.bytes_sent)
    if world.rank == 0:
        # One rank alone has no neighbours: its tile is the image.
        program = functools.partial(convolve_tiles, tile=image, kernels=kernels, wanted=wanted)
        whole, whole_gradients = run_over_mpi(program, communicator=MPI.COMM_SELF).result
        found = {
            "difference": checks.largest_difference([together(tiles)], [whole]),
            "gradients_difference": checks.largest_difference(gradients, whole_gradients),
            "bytes_sent": sent,
            "tiles": [part.shape[:2] for part in tiles],
        }
        print(f"{world.size} tiles: outputs differ by {found['difference']:.1e}", flush=True)
        if options.result:
            options.result.write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
