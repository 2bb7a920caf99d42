"""A training on ranks that the judge of `train` asks for."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from distlab.labs.plain_data import Array

Weights = Sequence[Array]


@dataclass(frozen=True)
class RankJob:
    """A training on `size` ranks, with one global batch in a step, from epoch `done` to `epochs`.

    weights, slots: those of the checkpoint from which it goes on, if it does.
    """

    size: int
    texts: int
    batch: int
    rate: float
    seed: int
    units: int
    done: int = 0
    epochs: int = 1
    weights: Weights = field(default_factory=list)
    slots: Weights = field(default_factory=list)

    @property
    def options(self) -> dict[str, object]:
        """As the program gets them."""
        names = ("texts", "batch", "rate", "seed", "units", "epochs")
        return {name: getattr(self, name) for name in names}

    @property
    def steps_per_epoch(self) -> int:
        """Of one process."""
        return -(-self.texts // self.batch)

    def batches(self) -> list[list[int]]:
        """The numbers of the texts in each step of one process."""
        orders = [
            np.random.default_rng([self.seed, epoch]).permutation(self.texts).tolist()
            for epoch in range(self.done, self.epochs)
        ]
        return [order[first : first + self.batch] for order in orders for first in range(0, self.texts, self.batch)]
