"""Which texts each rank worked on in each step, next to the batches of one process."""

from collections import Counter
from collections.abc import Sequence

from lab_16.hints import Lab16TrainHint as Hints
from lab_16.rank_job import RankJob

from distlab.labs.verdict import AnyHint


def shares_hint(job: RankJob, seen: Sequence[Sequence[Sequence[int]]]) -> AnyHint | None:
    """What is said of the ranks' shares; None if in each step every text of the batch is on one rank.

    seen: by rank and step the numbers of the texts, as many steps on every rank.
    """
    together = [[number for rank in seen for number in rank[step]] for step in range(len(seen[0]))]
    return _steps_hint(job, seen, together) or _texts_hint(job, together) or _evenness_hint(job, seen)


def _steps_hint(
    job: RankJob, seen: Sequence[Sequence[Sequence[int]]], together: Sequence[Sequence[int]]
) -> AnyHint | None:
    """Of the sizes of the steps, and how many there are."""
    expected, batch = job.batches(), job.batch
    for step, (numbers, texts) in enumerate(zip(together, expected, strict=False)):
        own = [rank[step] for rank in seen]
        if all(Counter(rank) == Counter(texts) for rank in own):
            return Hints.NOT_SHARED
        if len(own[0]) == batch and len(numbers) == batch * job.size:
            return Hints.BATCH_PER_RANK.says(count=batch * job.size, batch=batch)
    if len(together) < len(expected):
        is_last = together and min(len(numbers) for numbers in together) == batch
        return Hints.LAST_DROPPED if is_last else Hints.STEPS_MISSING.says(count=len(expected) - len(together))
    if len(together) > len(expected):
        if job.done and len(together) == job.steps_per_epoch * job.epochs:
            return Hints.FROM_THE_START.says(done=job.done)
        whole_epochs = {number: job.epochs - job.done for number in range(job.texts)}
        if all(Counter(number for step in rank for number in step) == whole_epochs for rank in seen):
            return Hints.ALL_TEXTS_EACH.says(count=len(together), expected=len(expected))
        return Hints.STEPS_TOO_MANY.says(count=len(together), expected=len(expected))
    return None


def _texts_hint(job: RankJob, together: Sequence[Sequence[int]]) -> AnyHint | None:
    """Of the texts of each epoch."""
    for first in range(0, len(together), job.steps_per_epoch):
        epoch = [number for numbers in together[first : first + job.steps_per_epoch] for number in numbers]
        if twice := len(epoch) - len(set(epoch)):
            return Hints.OVERLAP.says(count=twice)
        if missing := job.texts - len(epoch):
            return Hints.TEXTS_MISSING.says(count=missing)
    if any(set(numbers) != set(texts) for numbers, texts in zip(together, job.batches(), strict=True)):
        return Hints.OTHER_BATCH
    return None


def _evenness_hint(job: RankJob, seen: Sequence[Sequence[Sequence[int]]]) -> AnyHint | None:
    largest = max(len(step) for rank in seen for step in rank)
    if largest > -(-job.batch // job.size):
        return Hints.UNEVEN.says(count=largest, batch=job.batch, size=job.size)
    return None
