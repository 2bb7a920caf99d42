"""What exercise 4 can be tried on."""

import numpy as np

from distlab.labs.plain_data import Array

SHAPES = [(784, 128), (128,), (128, 10), (10,)]


def example(batch_size: int = 8, rest: int = 3) -> tuple[Array, Array, list[Array], int]:
    """Images, labels, first weights, and the batch size: three full batches and one with the rest."""
    generator = np.random.default_rng(4)
    images = generator.random((3 * batch_size + rest, 28, 28)).astype(np.float32)
    weights = [generator.normal(0, 0.05, shape).astype(np.float32) for shape in SHAPES]
    return images, generator.integers(0, 10, len(images)), weights, batch_size
