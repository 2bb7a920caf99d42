"""The gradients that usual mistakes give when micro-batches are accumulated, each with its hint."""

import numpy as np
from lab_04.hints import Lab04Hint
from numpy.typing import NDArray

from distlab.labs.verdict import AnyHint

Gradients = list[tuple[NDArray[np.float64], AnyHint]]


def mistakes(gradients: NDArray[np.float64], counts: NDArray[np.int64]) -> Gradients:
    """Of gradients (ranks, micro-batches, parameters), each the mean over as many images as `counts` says."""
    means = np.where(counts[..., None] > 0, gradients, 0.0)
    return [*_of_plain_means(means, counts), *_of_wrong_weights(means, counts), *_of_missing_images(means, counts)]


def _of_plain_means(means: NDArray[np.float64], counts: NDArray[np.int64]) -> Gradients:
    """Where a micro-batch counts as much as any other, however many images it has."""
    fewest, most = int(counts[counts > 0].min()), int(counts.max())
    filled, images = np.maximum(np.count_nonzero(counts, axis=1), 1)[:, None], counts.sum(axis=1)[:, None]
    smallest = f"{fewest} image{'' if fewest == 1 else 's'}"
    plain = Lab04Hint.MEAN_OF_ALL_MEANS.says(smallest=smallest, largest=most)
    added: AnyHint = Lab04Hint.MEANS_ADDED.says(smallest=smallest, largest=most)
    over_ranks = added
    if fewest == most and counts.all():  # where one may as well have divided by the images of one rank
        added, over_ranks = Lab04Hint.MICRO_BATCHES_SUMMED, Lab04Hint.RANKS_ADDED.says(ranks=len(counts))
    return [
        (means.mean(axis=(0, 1)), plain),
        (means.sum(axis=(0, 1)) / np.count_nonzero(counts), plain),
        ((means.sum(axis=1) / filled).mean(axis=0), plain),
        (means.sum(axis=1).mean(axis=0), added),
        (means.sum(axis=0).mean(axis=0), over_ranks),
        (means.sum(axis=(0, 1)), added),
        ((means.mean(axis=1) * images).sum(axis=0) / counts.sum(), Lab04Hint.WEIGHTED_BETWEEN_RANKS),
        ((means.sum(axis=1) / filled * images).sum(axis=0) / counts.sum(), Lab04Hint.WEIGHTED_BETWEEN_RANKS),
        ((means / np.maximum(counts, 1)[..., None]).sum(axis=(0, 1)), Lab04Hint.MEANS_BY_COUNTS),
    ]


def _of_wrong_weights(means: NDArray[np.float64], counts: NDArray[np.int64]) -> Gradients:
    """Where the means became sums over images, and these are divided wrongly."""
    ranks, total, full = len(counts), counts.sum(), counts.max()
    sums = means * counts[..., None]
    per_rank = sums.sum(axis=1) / np.maximum(counts.sum(axis=1), 1)[:, None]
    per_step = sums.sum(axis=0) / np.maximum(counts.sum(axis=0), 1)[:, None]
    all_sums = sums.sum(axis=(0, 1))
    other_counts = counts.T.reshape(counts.shape)[..., None]
    one_rank = Lab04Hint.DIVIDED_BY_ONE_RANK.says(ranks=ranks)
    filled = np.count_nonzero(counts)
    return [
        (per_rank.mean(axis=0), Lab04Hint.WEIGHTED_PER_RANK),
        (per_step.mean(axis=0), Lab04Hint.WEIGHTED_PER_STEP),
        (all_sums, Lab04Hint.GRADIENTS_NOT_DIVIDED),
        (all_sums / counts.size, Lab04Hint.DIVIDED_BY_MICRO_BATCHES.says(count=counts.size)),
        (all_sums / filled, Lab04Hint.DIVIDED_BY_MICRO_BATCHES.says(count=filled)),
        (all_sums / (full * counts.size), Lab04Hint.FULL_MICRO_BATCHES),
        (per_rank.sum(axis=0), one_rank),
        *((all_sums / images, one_rank) for images in counts.sum(axis=1)),
        (all_sums / total / ranks, Lab04Hint.DIVIDED_BY_RANKS_TOO.says(images=total, ranks=ranks)),
        ((means * other_counts).sum(axis=(0, 1)) / total, Lab04Hint.COUNTS_MIXED_UP),
    ]


def _of_missing_images(means: NDArray[np.float64], counts: NDArray[np.int64]) -> Gradients:
    """The means over the images of some ranks only, or of some micro-batches of each."""
    ranks, steps = counts.shape
    rank, step = np.indices(counts.shape)
    subsets: list[tuple[NDArray[np.bool_], Lab04Hint]] = []
    if not counts.all():
        full_ranks, full_steps = counts.min(axis=1)[rank] > 0, counts.min(axis=0)[step] > 0
        subsets = [(used, Lab04Hint.LEFT_OUT_WITH_EMPTY) for used in (full_ranks, full_steps)]
    some_ranks = [*(rank < count for count in range(1, ranks)), rank == ranks - 1]
    some_steps = [step == 0, step == steps - 1, step < steps - 1]
    subsets += [(np.asarray(used), Lab04Hint.IMAGES_MISSING) for used in (*some_ranks, *some_steps)]
    return [_mean_over(means, counts * used, hint, int(counts.sum())) for used, hint in subsets if counts[used].any()]


def _mean_over(
    means: NDArray[np.float64], counts: NDArray[np.int64], hint: Lab04Hint, images: int
) -> tuple[NDArray[np.float64], AnyHint]:
    mean = (means * counts[..., None]).sum(axis=(0, 1)) / counts.sum()
    return mean, hint.says(used=counts.sum(), images=images)
