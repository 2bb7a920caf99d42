"""Which images a rank sees in an epoch: the rule of PyTorch's DistributedSampler, and its exercise of lab 14."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from distlab.labs.answer import Answer
from distlab.labs.lab_14.hints import Lab14Hint
from distlab.labs.plain_data import Array, Plain
from distlab.labs.verdict import AnyHint, Verdict, parts, right, wrong


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


def shares(order: Array, ranks: int, drop_last: bool) -> list[list[int]]:
    """What each rank gets of an epoch's order: every `ranks`-th, after the order is cut or repeated."""
    count = len(order) // ranks if drop_last else -(-len(order) // ranks)
    return np.resize(order, count * ranks).reshape(count, ranks).T.tolist()


EXAMPLE = Epoch(7, 3, 0, 5, False)
SHARE, NEXT_EPOCH, REPEAT, DROP = "as many images for each rank", "epochs and seeds", "repeat", "drop_last"


def _drawn(generator: np.random.Generator) -> list[tuple[str, Epoch]]:
    """By the part that they belong to; each number differs from the others, so that none can take another's place."""
    ranks = int(generator.integers(3, 6))
    per_rank = int(generator.integers(4, 8))
    left_over = int(generator.integers(1, ranks))
    seed = int(generator.integers(20, 90))
    epoch = int(generator.integers(2, 9))
    even, uneven = ranks * per_rank, ranks * per_rank + left_over
    few = Epoch(int(generator.integers(2, 4)), int(generator.integers(8, 12)), epoch, seed, False)
    return [
        (SHARE, Epoch(even, ranks, 0, 0, False)),
        (SHARE, Epoch(even, ranks, 0, 0, True)),
        (NEXT_EPOCH, Epoch(even, ranks, 0, seed, False)),
        (NEXT_EPOCH, Epoch(even, ranks, epoch, 0, True)),
        (NEXT_EPOCH, Epoch(even, ranks, epoch, seed, False)),
        (REPEAT, EXAMPLE),
        (REPEAT, Epoch(uneven, ranks, epoch, seed, False)),
        (REPEAT, Epoch(even + ranks - 1, ranks, epoch, seed, False)),
        (REPEAT, few),
        (DROP, Epoch(uneven, ranks, epoch, seed, True)),
        (DROP, Epoch(even + ranks - 1, ranks, epoch, seed, True)),
        (DROP, few._replace(drop_last=True)),
    ]


def judge_samples(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A quarter of the points for each part; on all ranks."""
    drawn = _drawn(generator)
    answers = [_answers(answer, job) for _, job in drawn]
    by_job = list(zip((job for _, job in drawn), answers, strict=True))
    # A mistake that explains every answer; else each answer is explained by itself.
    usual = [hint for variant, hint in _VARIANTS if all(variant(job) == received for job, received in by_job)]
    verdicts = {part: right() for part, _ in drawn}
    for (part, job), received in zip(drawn, answers, strict=True):
        hint = _hint(job, received)
        if verdicts[part].is_right and hint is not None:
            verdict = wrong(usual[0] if usual else hint)
            # The same mistake in another part is said once, with its first example.
            verdicts[part] = next((before for before in verdicts.values() if before.hints == verdict.hints), verdict)
    return parts(verdicts)


def _answers(answer: Answer, job: Epoch) -> list[list[int] | None]:
    """What the function gives to each rank; None for what is no list of whole numbers."""
    return [
        _numbers(answer.call("samples", job.images, job.ranks, rank, job.epoch, job.seed, job.drop_last))
        for rank in range(job.ranks)
    ]


def _hint(job: Epoch, received: list[list[int] | None]) -> AnyHint | None:
    """What is wrong with what the ranks were given; None if nothing is."""
    if any(of_rank is None for of_rank in received):
        return Lab14Hint.NOT_NUMBERS
    expected = _by(job, job.seed + job.epoch)
    if received == expected:
        return None
    for variant, hint in _VARIANTS:
        mistaken = variant(job)
        if mistaken == received and mistaken != expected:
            return hint
    rank = next(rank for rank in range(job.ranks) if received[rank] != expected[rank])
    if sorted(received[rank] or []) == sorted(expected[rank]):
        return Lab14Hint.ANOTHER_ORDER.says(job=job, rank=rank)
    if received[rank] in expected:
        return Lab14Hint.OF_ANOTHER_RANK.says(job=job, rank=rank, owner=expected.index(received[rank] or []))
    lengths = [len(of_rank or []) for of_rank in received]
    if lengths != [len(expected[0])] * job.ranks:
        return Lab14Hint.WRONG_LENGTHS.says(job=job, lengths=lengths, count=len(expected[0]))
    return Lab14Hint.OTHER_SAMPLES.says(
        job=job, rank=rank, received=received[rank], order=_order(job, job.seed + job.epoch).tolist()
    )


def _numbers(value: Plain) -> list[int] | None:
    """A list of whole numbers; None for all else."""
    if isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in "iu":
        value = value.tolist()
    if not isinstance(value, (list, tuple)) or not all(type(number) is int for number in value):
        return None
    return [int(number) for number in value]  # type: ignore[arg-type]


def _order(job: Epoch, key: object) -> Array:
    return np.random.default_rng(key).permutation(job.images)  # type: ignore[arg-type]


def _by(job: Epoch, key: object) -> list[list[int]]:
    return shares(_order(job, key), job.ranks, job.drop_last)


def _by_rank(job: Epoch) -> list[list[int]]:
    return [_by(job, job.seed + job.epoch + rank)[rank] for rank in range(job.ranks)]


def _blocks(job: Epoch) -> list[list[int]]:
    together = np.array(_by(job, job.seed + job.epoch)).T.ravel()
    return together.reshape(job.ranks, -1).tolist()


def _shuffled_after(job: Epoch) -> list[list[int]]:
    own = shares(np.arange(job.images), job.ranks, job.drop_last)
    return [np.random.default_rng(job.seed + job.epoch).permutation(share).tolist() for share in own]


def _uneven(job: Epoch) -> list[list[int]]:
    order = _order(job, job.seed + job.epoch)
    return [order[rank :: job.ranks].tolist() for rank in range(job.ranks)]


def _otherwise(job: Epoch) -> list[list[int]]:
    return shares(_order(job, job.seed + job.epoch), job.ranks, not job.drop_last)


def _always_one_more(job: Epoch) -> list[list[int]]:
    order = _order(job, job.seed + job.epoch)
    count = job.images // job.ranks + (0 if job.drop_last else 1)
    return np.resize(order, count * job.ranks).reshape(count, job.ranks).T.tolist()


def _head_dropped(job: Epoch) -> list[list[int]]:
    order = _order(job, job.seed + job.epoch)
    return shares(order[len(order) % job.ranks :], job.ranks, True) if job.drop_last else _by(job, job.seed + job.epoch)


def _padded_with(job: Epoch, padding: Callable[[Array, int], Array]) -> list[list[int]]:
    order = _order(job, job.seed + job.epoch)
    missing = -len(order) % job.ranks
    padded = np.concatenate([order, padding(order, missing)])
    if len(padded) % job.ranks:
        return []
    return shares(padded, job.ranks, False)


def _padded_once(job: Epoch) -> list[list[int]]:
    """The images are repeated once only, so that a few ranks get nothing."""
    order = _order(job, job.seed + job.epoch)
    padded = np.concatenate([order, order[: -len(order) % job.ranks]])
    return [padded[rank :: job.ranks].tolist() for rank in range(job.ranks)]


_VARIANTS: list[tuple[Callable[[Epoch], list[list[int]]], AnyHint]] = [
    (lambda job: shares(np.arange(job.images), job.ranks, job.drop_last), Lab14Hint.NOT_SHUFFLED),
    (lambda job: _by(job, job.seed), Lab14Hint.EPOCH_IGNORED),
    (lambda job: _by(job, job.epoch), Lab14Hint.SEED_IGNORED),
    (lambda job: _by(job, [job.seed, job.epoch]), Lab14Hint.SEED_AND_EPOCH),
    (lambda job: _by(job, job.seed * job.epoch), Lab14Hint.SEED_AND_EPOCH),
    (_by_rank, Lab14Hint.SEED_BY_RANK),
    (lambda job: [_order(job, job.seed + job.epoch).tolist()] * job.ranks, Lab14Hint.ALL_TO_ALL),
    (_blocks, Lab14Hint.BLOCKS),
    (_shuffled_after, Lab14Hint.SHUFFLED_AFTER),
    (_uneven, Lab14Hint.UNEVEN),
    (_otherwise, Lab14Hint.DROP_LAST_IGNORED),
    (_always_one_more, Lab14Hint.ONE_MORE),
    (_head_dropped, Lab14Hint.HEAD_DROPPED),
    (_padded_once, Lab14Hint.PADDED_ONCE),
    (lambda job: _padded_with(job, lambda order, count: order[len(order) - count :]), Lab14Hint.PADDED_FROM_END),
    (lambda job: _padded_with(job, lambda order, count: np.arange(count)), Lab14Hint.PADDED_IN_ORDER),
    (lambda job: _padded_with(job, lambda order, count: np.repeat(order[-1:], count)), Lab14Hint.PADDED_FROM_END),
]
