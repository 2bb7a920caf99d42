"""The exercise of lab 14 in which students write the rule of PyTorch's DistributedSampler."""

import numpy as np
from lab_14.hints import Lab14Hint
from lab_14.sampling import EXAMPLE, Epoch
from lab_14.sampling_mistakes import (
    SIGNS,
    VARIANTS,
    Asked,
    SharesOfRanks,
    explains,
    order_from,
    shares_from,
)

from distlab.labs.answer import Answer
from distlab.labs.plain_data import Plain
from distlab.labs.verdict import AnyHint, Verdict, parts, right, wrong

SHARE, NEXT_EPOCH, REPEAT, DROP = "as many images for each rank", "epochs and seeds", "repeat", "drop_last"


def _drawn(generator: np.random.Generator) -> list[tuple[str, Epoch]]:
    """By the part that they belong to; each number differs from the others, so that none can take another's place.

    Images are repeated and dropped in epoch 0, so that a forgotten epoch costs one part only.
    """
    ranks = int(generator.integers(3, 6))
    per_rank = int(generator.integers(4, 8))
    left_over = int(generator.integers(1, ranks))
    seed = int(generator.integers(20, 90))
    epoch = int(generator.integers(2, 9))
    even, uneven = ranks * per_rank, ranks * per_rank + left_over
    few = Epoch(int(generator.integers(2, 4)), int(generator.integers(8, 12)), 0, seed, False)
    return [
        (SHARE, Epoch(even, ranks, 0, 0, False)),
        (SHARE, Epoch(even, ranks, 0, 0, True)),
        (NEXT_EPOCH, Epoch(even, ranks, 0, seed, False)),
        (NEXT_EPOCH, Epoch(even, ranks, epoch, 0, True)),
        (NEXT_EPOCH, Epoch(even, ranks, epoch, seed, False)),
        (REPEAT, EXAMPLE),
        (REPEAT, Epoch(uneven, ranks, 0, seed, False)),
        (REPEAT, Epoch(even + ranks - 1, ranks, 0, seed, False)),
        (REPEAT, few),
        (DROP, Epoch(uneven, ranks, 0, seed, True)),
        (DROP, Epoch(even + ranks - 1, ranks, 0, seed, True)),
        (DROP, few._replace(drop_last=True)),
    ]


def judge_samples(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A quarter of the points for each part; on all ranks."""
    by_part: dict[str, list[Asked]] = {}
    for part, job in _drawn(generator):
        by_part.setdefault(part, []).append(Asked(job, _answers(answer, job)))
    asked = [job for jobs in by_part.values() for job in jobs]
    # A mistake that explains every answer; else each part is explained by itself.
    usual = next((hint for variant, hint in VARIANTS if explains(variant, asked)), None)
    verdicts: dict[str, Verdict] = {}
    for part, jobs in by_part.items():
        hint = _hint(jobs)
        verdicts[part] = right() if hint is None else wrong(usual or hint)
    # The same mistake in another part is said once, with its first example.
    first = {verdict.hints: verdict for verdict in reversed(verdicts.values())}
    return parts({part: first[verdict.hints] for part, verdict in verdicts.items()})


def _answers(answer: Answer, job: Epoch) -> list[list[int] | None]:
    """What the function gives to each rank; None for what is no list of whole numbers."""
    return [
        _numbers(answer.call("samples", job.images, job.ranks, rank, job.epoch, job.seed, job.drop_last))
        for rank in range(job.ranks)
    ]


def _hint(asked: list[Asked]) -> AnyHint | None:
    """What is wrong with the answers to the jobs of a part, and holds for several; None if all are right."""
    mistaken = [(job, received) for job, received in asked if received != shares_from(job, job.seed + job.epoch)]
    if not mistaken:
        return None
    if any(of_rank is None for _, received in mistaken for of_rank in received):
        return Lab14Hint.NOT_NUMBERS
    # With fewer images than ranks, many mistakes look alike.
    usual = [job for job in mistaken if job[0].images >= job[0].ranks] or mistaken
    clear = [job for job in asked if job.job.images >= job.job.ranks or len(usual) == len(mistaken)]
    for variant, hint in VARIANTS:
        if explains(variant, clear):
            return hint
    answered = [SharesOfRanks(job, [of_rank or [] for of_rank in received]) for job, received in usual]
    for sign in SIGNS:
        hints = [sign(*shares) for shares in answered]
        if all(hints):
            return hints[0]
    job, received = answered[0]
    expected, order = shares_from(job, job.seed + job.epoch), order_from(job, job.seed + job.epoch)
    rank = next(rank for rank in range(job.ranks) if received[rank] != expected[rank])
    return Lab14Hint.OTHER_SAMPLES.says(job=job, rank=rank, received=received[rank], order=order.tolist())


def _numbers(value: Plain) -> list[int] | None:
    """A list of whole numbers; None for all else."""
    if isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in "iu":
        value = value.tolist()
    if not isinstance(value, (list, tuple)) or not all(type(number) is int for number in value):
        return None
    return [int(number) for number in value]  # type: ignore[arg-type]
