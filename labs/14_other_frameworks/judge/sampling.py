"""Which images a rank sees in an epoch: the rule of PyTorch's DistributedSampler."""

from typing import NamedTuple

import numpy as np

from distlab.labs.plain_data import Array

Shares = list[list[int]]
"""The images of each rank, in order."""


class Epoch(NamedTuple):
    """Images in the data set, ranks, number of the epoch, the sampler's seed, whether left-over images are dropped."""

    images: int
    ranks: int
    epoch: int
    seed: int
    drop_last: bool

    def __str__(self) -> str:
        numbers = f"{self.images} images, {self.ranks} ranks, epoch {self.epoch}, seed {self.seed}"
        return f"{numbers}, drop_last={self.drop_last}"


def samples(images: int, ranks: int, rank: int, epoch: int, seed: int, drop_last: bool) -> list[int]:
    """The numbers of the images that a rank sees, in order; as DistributedSampler, with NumPy's permutation."""
    order = np.random.default_rng(seed + epoch).permutation(images)
    return shares(order, ranks, drop_last)[rank]


def shares(order: Array, ranks: int, drop_last: bool) -> Shares:
    """What each rank gets of an epoch's order: every `ranks`-th, after the order is cut or repeated."""
    count = len(order) // ranks if drop_last else -(-len(order) // ranks)
    return np.resize(order, count * ranks).reshape(count, ranks).T.tolist()


EXAMPLE = Epoch(7, 3, 0, 8, False)
"""Its order neither begins nor ends with small numbers, so that few mistakes give what another one would give."""
