"""Logs of jobs whose programs use the sampler wrongly, for the exercise of lab 14 that finds out in which way."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from lab_14.given import FAULTS, IMAGES
from lab_14.sampling import samples, shares

NOTHING, NO_SAMPLER, SEED_PER_RANK, NO_SHUFFLING, NO_SET_EPOCH, TOO_LATE = FAULTS
EVEN, REPEATED, DROPPED = VARIANTS = ("even", "repeated", "dropped")
"""Whether the images divide evenly among the ranks, and what the sampler does if not."""

RankLog = list[list[int]]


class LoggedJob(NamedTuple):
    """Its fault, what its ranks have seen (log[rank][epoch]), and how many images there are."""

    fault: str
    log: list[RankLog]
    images: int

    def __str__(self) -> str:
        return f"a job of {len(self.log)} ranks and {len(self.log[0])} epochs"

    def together(self, epoch: int) -> list[int]:
        """The images of an epoch in the order of which the ranks have their shares."""
        return [image for step in zip(*(epochs[epoch] for epochs in self.log), strict=True) for image in step]


def drawn_job(fault: str, variant: str, ranks: int, generator: np.random.Generator) -> LoggedJob:
    """A job with this fault."""
    per_rank, epochs = (int(generator.integers(low, high)) for low, high in ((6, 9), (3, 5)))
    # With one image left over, all ranks but the first get a repeated one.
    images = ranks * per_rank + {EVEN: 0, REPEATED: 1, DROPPED: ranks - 1}[variant]
    return LoggedJob(fault, _log(fault, images, ranks, epochs, variant == DROPPED, generator), images)


def _log(
    fault: str, images: int, ranks: int, epochs: int, drop_last: bool, generator: np.random.Generator
) -> list[RankLog]:
    """What the ranks of a job see; drawn again until its fault shows."""
    while True:
        seed = int(generator.integers(10_000))
        log = [
            [_epoch(fault, images, ranks, rank, epoch, seed, drop_last) for epoch in range(epochs)]
            for rank in range(ranks)
        ]
        if true_fault(log, images) == fault:
            return log


def _epoch(fault: str, images: int, ranks: int, rank: int, epoch: int, seed: int, drop_last: bool) -> list[int]:
    match fault:
        case "no sampler":
            return np.random.default_rng([seed, rank, epoch]).permutation(images).tolist()  # type: ignore[no-any-return]
        case "no shuffling":
            return shares(np.arange(images), ranks, drop_last)[rank]
        case "a seed per rank":
            seed += 1000 * rank
        case "no set_epoch":
            epoch = 0
        case "set_epoch too late":
            epoch = max(0, epoch - 1)
    return samples(images, ranks, rank, epoch, seed, drop_last)


def true_fault(log: list[RankLog], images: int) -> str:
    """The fault by its signs in every epoch and on every rank."""
    if all(sorted(epoch) == list(range(images)) for epochs in log for epoch in epochs):
        return NO_SAMPLER
    together = [[image for epochs in log for image in epochs[epoch]] for epoch in range(len(log[0]))]
    if all(len(set(seen)) < min(images, len(seen)) for seen in together):
        return SEED_PER_RANK
    orders = log[0]
    is_new = [later != earlier for earlier, later in pairwise(orders)]
    if not any(is_new):
        return NO_SHUFFLING if orders[0] == sorted(orders[0]) else NO_SET_EPOCH
    return NOTHING if all(is_new) else TOO_LATE


def with_two_disjoint_ranks(generator: np.random.Generator) -> LoggedJob:
    """Each rank has another seed, and still ranks 0 and 1 see no image both: others do."""
    ranks, per_rank = 6, 6
    while True:
        log = _log(SEED_PER_RANK, ranks * per_rank, ranks, 3, False, generator)
        if not any(set(first) & set(second) for first, second in zip(log[0], log[1], strict=True)):
            return LoggedJob(SEED_PER_RANK, log, ranks * per_rank)


def with_one_image_too_few(drop_last: bool, generator: np.random.Generator) -> LoggedJob:
    """Two ranks have seeds of their own, and by chance see in each epoch one image less than with the same seed."""
    ranks, epochs = 2, range(3)
    seen = ranks * (IMAGES // ranks) if drop_last else IMAGES
    while True:
        seeds = generator.choice(10_000, 200, replace=False).tolist()
        logs = [
            [[samples(IMAGES, ranks, rank, epoch, seed, drop_last) for epoch in epochs] for seed in seeds]
            for rank in range(ranks)
        ]
        has_seen = [np.eye(IMAGES, dtype=bool)[np.array(log)].any(axis=2) for log in logs]  # [seed, epoch, image]
        together = (has_seen[0][:, None] | has_seen[1][None]).sum(axis=-1)
        pairs = np.argwhere((together == seen - 1).all(axis=-1)).tolist()
        if pairs:
            first, second = pairs[int(generator.integers(len(pairs)))]
            return LoggedJob(SEED_PER_RANK, [logs[0][first], logs[1][second]], IMAGES)


def beginning_in_order(generator: np.random.Generator) -> LoggedJob:
    """`set_epoch` is missing, but two images of rank 0 and one of rank 1 are by chance in order."""
    while True:
        seed = int(generator.integers(1_000_000))
        order = np.random.default_rng(seed).permutation(IMAGES).tolist()
        if order[:3] == [0, 1, 2] and order[4] != 4:
            log = [[samples(IMAGES, 2, rank, 0, seed, False)] * 3 for rank in range(2)]
            return LoggedJob(NO_SET_EPOCH, log, IMAGES)
