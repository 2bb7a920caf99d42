"""Write what all programs of this folder start from: first weights, and images in order.

    python start.py start.npz
    python start.py start.npz --dataset mnist --images 4800

NumPy alone draws the weights, so that no framework has the advantage. The file has the weights
in Keras's layout (`layouts.py`), and `images`, float32 (n, 28, 28), and `labels`, int64 (n,).
Every program reads the images from first to last; a rank of N takes every N-th.
"""

import argparse
from pathlib import Path

from distlab import data

import layouts
import numpy as np

FILTERS, FEATURES, UNITS, SEED = layouts.CHANNELS, 13 * 13 * layouts.CHANNELS, 64, 14


def first_weights() -> list[np.ndarray]:
    """Kernels as Keras draws them (Glorot and Bengio 2010, equation 16), biases of zero."""
    random, weights = np.random.default_rng(SEED), []
    for shape in ((3, 3, 1, FILTERS), (FEATURES, UNITS), (UNITS, data.CLASSES)):
        field = int(np.prod(shape[:-2]))  # positions that the kernel covers
        limit = np.sqrt(6 / (field * (shape[-2] + shape[-1])))
        kernel = random.uniform(-limit, limit, shape).astype(np.float32)
        weights += [kernel, np.zeros(shape[-1], np.float32)]
    return weights


def write(file: Path, dataset: str = "digits", images: int = 960) -> None:
    """Write the file."""
    pictures, labels = data.load(dataset).train
    order = np.random.default_rng(SEED).permutation(len(pictures))[:images]
    layouts.write(file, first_weights(), images=pictures[order], labels=labels[order])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write first weights and images in order.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--dataset", choices=data.NAMES, default="digits")
    parser.add_argument("--images", type=int, default=960)
    options = parser.parse_args()
    write(options.file, options.dataset, options.images)
    print(f"{options.file}: {options.images} images of {options.dataset}")
