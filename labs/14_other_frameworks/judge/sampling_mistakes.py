"""What usual mistakes with the sampler's rule give, and signs of others. The texts are in `hints`."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from lab_14.hints import Lab14Hint
from lab_14.sampling import Epoch, Shares, shares

from distlab.labs.plain_data import Array
from distlab.labs.verdict import AnyHint

Variant = Callable[[Epoch], Shares]
"""What a usual mistake gives."""


class Asked(NamedTuple):
    """A job, and what the function gave to each rank; None for what is no list of whole numbers."""

    job: Epoch
    received: list[list[int] | None]


class SharesOfRanks(NamedTuple):
    """The same where every rank has a list."""

    job: Epoch
    received: Shares


def explains(variant: Variant, asked: list[Asked]) -> bool:
    """Whether the mistake gives exactly these answers."""
    return all(variant(job) == received for job, received in asked)


def order_from(job: Epoch, key: object) -> Array:
    """The order of all images from a number."""
    return np.random.default_rng(key).permutation(job.images)  # type: ignore[arg-type]


def shares_from(job: Epoch, key: object) -> Shares:
    """What all ranks get of it."""
    return shares(order_from(job, key), job.ranks, job.drop_last)


def _by_rank(job: Epoch) -> Shares:
    return [shares_from(job, job.seed + job.epoch + rank)[rank] for rank in range(job.ranks)]


def _blocks(job: Epoch) -> Shares:
    together = np.array(shares_from(job, job.seed + job.epoch)).T.ravel()
    return together.reshape(job.ranks, -1).tolist()


def _from_1(job: Epoch) -> Shares:
    return [[image + 1 for image in share] for share in shares_from(job, job.seed + job.epoch)]


def _shuffled_after(job: Epoch) -> Shares:
    own = shares(np.arange(job.images), job.ranks, job.drop_last)
    return [np.random.default_rng(job.seed + job.epoch).permutation(share).tolist() for share in own]


def _uneven(job: Epoch) -> Shares:
    order = order_from(job, job.seed + job.epoch)
    return [order[rank :: job.ranks].tolist() for rank in range(job.ranks)]


def _otherwise(job: Epoch) -> Shares:
    return shares(order_from(job, job.seed + job.epoch), job.ranks, not job.drop_last)


def _always_one_more(job: Epoch) -> Shares:
    order = order_from(job, job.seed + job.epoch)
    count = job.images // job.ranks + (0 if job.drop_last else 1)
    return np.resize(order, count * job.ranks).reshape(count, job.ranks).T.tolist()


def _head_dropped(job: Epoch) -> Shares:
    order = order_from(job, job.seed + job.epoch)
    return (
        shares(order[len(order) % job.ranks :], job.ranks, True)
        if job.drop_last
        else shares_from(job, job.seed + job.epoch)
    )


def _padded_with(job: Epoch, padding: Callable[[Array, int], Array]) -> Shares:
    order = order_from(job, job.seed + job.epoch)
    missing = -len(order) % job.ranks
    padded = np.concatenate([order, padding(order, missing)])
    if len(padded) % job.ranks:
        return []
    return shares(padded, job.ranks, False)


def _padded_once(job: Epoch) -> Shares:
    """The images are repeated once only, so that a few ranks get nothing."""
    order = order_from(job, job.seed + job.epoch)
    padded = np.concatenate([order, order[: -len(order) % job.ranks]])
    return [padded[rank :: job.ranks].tolist() for rank in range(job.ranks)]


def _cut_by_minus_zero(job: Epoch) -> Shares:
    """With nothing left over, order[:-0] is empty."""
    order = order_from(job, job.seed + job.epoch)
    return (
        shares(order[: -(len(order) % job.ranks)], job.ranks, True)
        if job.drop_last
        else shares(order, job.ranks, False)
    )


def _of_images(job: Epoch, received: Shares) -> AnyHint | None:
    """Every rank has its images, and not in their order."""
    expected = shares_from(job, job.seed + job.epoch)
    if [sorted(of_rank) for of_rank in received] != [sorted(of_rank) for of_rank in expected]:
        return None
    rank = next(rank for rank in range(job.ranks) if received[rank] != expected[rank])
    return Lab14Hint.ANOTHER_ORDER.says(job=job, rank=rank)


def _of_another_rank(job: Epoch, received: Shares) -> AnyHint | None:
    """Most ranks have what is another one's, or more than that."""
    expected = shares_from(job, job.seed + job.epoch)
    owners = {
        rank: expected.index(own) for rank, own in enumerate(received) if own in expected and own != expected[rank]
    }
    if len(owners) < job.ranks - 1:
        return None
    rank, owner = next(iter(owners.items()))
    return Lab14Hint.OF_ANOTHER_RANK.says(job=job, rank=rank, owner=owner)


def _of_another_order(job: Epoch, received: Shares) -> AnyHint | None:
    """The shares are those of another order of all images."""
    order = order_from(job, job.seed + job.epoch).tolist()
    head = _interleaved(job, received)[: job.images]
    is_order = len(set(head)) == len(head) > 0 and set(head) <= set(order)
    if not is_order or head == order[: len(head)]:
        return None
    return Lab14Hint.ANOTHER_PERMUTATION.says(job=job, received=head, order=order)


def _of_another_padding(job: Epoch, received: Shares) -> AnyHint | None:
    """The order is right, and goes on after its end with something else."""
    order = order_from(job, job.seed + job.epoch).tolist()
    together = _interleaved(job, received)
    if job.drop_last or together[: job.images] != order:
        return None
    return Lab14Hint.PADDED_OTHERWISE.says(job=job, order=order, padding=together[job.images :])


def _interleaved(job: Epoch, received: Shares) -> list[int]:
    """The order of which these are the shares, if each rank has as many images as it should; else nothing."""
    if {len(of_rank) for of_rank in received} != {len(shares_from(job, 0)[0])}:
        return []
    return np.array(received).T.ravel().tolist()


def _of_another_length(job: Epoch, received: Shares) -> AnyHint | None:
    """Some ranks have too many images or too few."""
    lengths, count = [len(of_rank) for of_rank in received], len(shares_from(job, 0)[0])
    if lengths == [count] * job.ranks:
        return None
    return Lab14Hint.WRONG_LENGTHS.says(job=job, lengths=lengths, count=count)


SIGNS: list[Callable[[Epoch, Shares], AnyHint | None]] = [
    _of_images,
    _of_another_rank,
    _of_another_order,
    _of_another_padding,
    _of_another_length,
]
"""What may hold for the answers to several jobs, if no usual mistake gives them."""

VARIANTS: list[tuple[Variant, AnyHint]] = [
    (lambda job: shares(np.arange(job.images), job.ranks, job.drop_last), Lab14Hint.NOT_SHUFFLED),
    (lambda job: shares_from(job, job.seed), Lab14Hint.EPOCH_IGNORED),
    (lambda job: shares_from(job, job.epoch), Lab14Hint.SEED_IGNORED),
    (lambda job: shares_from(job, [job.seed, job.epoch]), Lab14Hint.SEED_AND_EPOCH),
    (lambda job: shares_from(job, job.seed * job.epoch), Lab14Hint.SEED_AND_EPOCH),
    (_by_rank, Lab14Hint.SEED_BY_RANK),
    (lambda job: [order_from(job, job.seed + job.epoch).tolist()] * job.ranks, Lab14Hint.ALL_TO_ALL),
    (_blocks, Lab14Hint.BLOCKS),
    (_from_1, Lab14Hint.NUMBERS_FROM_1),
    (_shuffled_after, Lab14Hint.SHUFFLED_AFTER),
    (_uneven, Lab14Hint.UNEVEN),
    (_otherwise, Lab14Hint.DROP_LAST_IGNORED),
    (_always_one_more, Lab14Hint.ONE_MORE),
    (_cut_by_minus_zero, Lab14Hint.CUT_BY_MINUS_ZERO),
    (_head_dropped, Lab14Hint.HEAD_DROPPED),
    (_padded_once, Lab14Hint.PADDED_ONCE),
    (lambda job: _padded_with(job, lambda order, count: order[len(order) - count :]), Lab14Hint.PADDED_FROM_END),
    (lambda job: _padded_with(job, lambda order, count: np.arange(count)), Lab14Hint.PADDED_IN_ORDER),
    (lambda job: _padded_with(job, lambda order, count: np.repeat(order[-1:], count)), Lab14Hint.PADDED_FROM_END),
]
