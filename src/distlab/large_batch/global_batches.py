"""Which images are in which step, and which of them a rank gets: a function of the step and the seed alone.

So a run can begin at any step, and a run on 8 ranks has the same global batches as a run in one process.
"""

import numpy as np

from distlab.runtime.errors import PlainError


class BatchDoesNotFit(PlainError, ValueError):
    """The global batch is larger than the data set, or cannot be divided evenly among the ranks."""


def steps_per_epoch(images: int, global_batch: int) -> int:
    """How many whole global batches an epoch has; the images left over differ from epoch to epoch.

    Raises BatchDoesNotFit when there is none.
    """
    if not 0 < global_batch <= images:
        raise BatchDoesNotFit(
            f"A global batch of {global_batch} does not fit into {images} images; choose 1 to {images}."
        )
    return images // global_batch


def numbers(step: int, images: int, global_batch: int, seed: int) -> np.ndarray:
    """The numbers of the images in a global batch, int64 (global_batch,): every epoch is shuffled differently.

    Raises as `steps_per_epoch` does.
    """
    epoch, position = divmod(step, steps_per_epoch(images, global_batch))
    order = np.random.default_rng([seed, epoch]).permutation(images)
    return order[position * global_batch : (position + 1) * global_batch]


def share(batch: np.ndarray, rank: int, size: int) -> np.ndarray:
    """The part of a global batch that belongs to `rank` of `size` ranks; the parts are equal.

    Raises BatchDoesNotFit when they cannot be.
    """
    if len(batch) % size:
        raise BatchDoesNotFit(f"A global batch of {len(batch)} cannot be divided evenly among {size} ranks.")
    return np.split(batch, size)[rank]
