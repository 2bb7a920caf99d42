"""Write what all programs of this folder start from: first weights, and the images in the order of training.

    python start.py start.npz
    python start.py start.npz --dataset mnist --images 4800

NumPy alone draws the weights, so that no framework has the advantage. The file has the weights in Keras's layout
(`layouts.py`), and `images`, float32 (n, 28, 28), and `labels`, int64 (n,). Every program reads the images from first
to last; a rank of N takes every N-th.
"""

import argparse
from pathlib import Path

from distlab import data

import layouts
import numpy as np

FILTERS, UNITS = 16, 64
FEATURES = (13, 13, FILTERS)  # of a 28 × 28 image after a 3 × 3 convolution and 2 × 2 pooling


def first_weights(seed: int) -> list[np.ndarray]:
    """Kernels as Keras draws them (uniform, Glorot and Bengio 2010, equation 16), biases zero; float32."""
    random = np.random.default_rng(seed)
    weights = []
    for shape in ((3, 3, 1, FILTERS), (int(np.prod(FEATURES)), UNITS), (UNITS, data.CLASSES)):
        field = int(np.prod(shape[:-2]))  # positions that the kernel covers
        limit = np.sqrt(6 / (field * (shape[-2] + shape[-1])))
        weights += [random.uniform(-limit, limit, shape).astype(np.float32), np.zeros(shape[-1], np.float32)]
    return weights


def write(file: Path, dataset: str = "digits", images: int = 960, seed: int = 14) -> None:
    """Write the file."""
    pictures, labels = data.load(dataset).train
    order = np.random.default_rng(seed).permutation(len(pictures))[:images]
    layouts.write(file, first_weights(seed), images=pictures[order], labels=labels[order])


def main() -> None:
    """Write the file that is asked for."""
    parser = argparse.ArgumentParser(description="Write first weights and images in the order of training.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--dataset", choices=data.NAMES, default="digits")
    parser.add_argument("--images", type=int, default=960)
    parser.add_argument("--seed", type=int, default=14)
    options = parser.parse_args()
    write(options.file, options.dataset, options.images, options.seed)
    print(f"{options.file}: {options.images} images of {options.dataset}, weights from seed {options.seed}")


if __name__ == "__main__":
    main()
