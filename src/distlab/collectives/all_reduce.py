"""All-reduce, five ways besides the ring: every rank gets the sum of all ranks' arrays.

In all of them: array has any shape and dtype, the same on every rank, and is left as it is; every rank returns the sum,
with the same shape and dtype.
"""

from collections.abc import Awaitable, Callable

import numpy as np

from distlab.collectives.partition import GroupRank, own_copy
from distlab.collectives.ring import all_gather, reduce_scatter, ring_all_reduce
from distlab.collectives.tree import broadcast, reduce
from distlab.simulate.rank import Rank


async def naive_all_reduce(rank: Rank, array: np.ndarray) -> np.ndarray:
    """Rank 0 gathers every array, adds them up, and sends the sum to each rank: naive, since all goes through rank 0.

    Cost: 2(p−1)(α + nβ) + nγ, as long as adding an array takes no longer than receiving the next (nγ ≤ α + nβ).
    """
    total = own_copy(array)
    others = range(1, rank.size)
    if rank.index == 0:
        for source in others:
            received = await rank.receive(source)
            await rank.reduce(total, received)
        for to in others:
            await rank.send(to, total)
    else:
        await rank.send(0, total)
        total = await rank.receive(0)
    return total


async def tree_all_reduce(rank: Rank, array: np.ndarray) -> np.ndarray:
    """Reduce to rank 0 on a binomial tree, then broadcast on the same tree.

    Cost: ⌈lg p⌉(2α + 2nβ + nγ); for p ≠ 2^k at most. Source: Thakur, Rabenseifner and Gropp 2005.
    """
    total = await reduce(rank, array)
    return await broadcast(rank, total)


async def recursive_doubling_all_reduce(rank: Rank, array: np.ndarray) -> np.ndarray:
    """In each step two ranks exchange all they have and add it: few steps, but the whole array each time.

    Cost: ⌊lg p⌋(α + nβ + nγ), and 2α + 2nβ + nγ more if p is not a power of two.
    Source: Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005.
    """

    async def among(group: Rank, total: np.ndarray) -> np.ndarray:
        distance = 1
        while distance < group.size:
            partner = group.index ^ distance
            received = await group.exchange(partner, total, partner)
            await group.reduce(total, received)
            distance *= 2
        return total

    return await _with_guests(rank, array, _beyond_power_of_two(rank.size), among)


async def halving_doubling_all_reduce(rank: Rank, array: np.ndarray) -> np.ndarray:
    """Rabenseifner's algorithm: as few steps as a tree needs, and as few bytes as a ring.

    Recursive halving: in each step two ranks share the range that both answer for, and each adds up one half of it.
    Recursive doubling: the same steps backwards, in which they exchange the finished halves.
    Cost, for equal halves, with q = 2^⌊lg p⌋: 2 lg q·α + 2((q−1)/q)nβ + ((q−1)/q)nγ, and if p is not a power of two at
    least 2α + 2nβ + nγ more: ranks without a guest are ahead, and what they send early can hold up a port.
    Source: Rabenseifner 2004; Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005. (They print p for q in the fractions,
    which is a little more: only q ranks take part.)
    """

    async def among(group: Rank, total: np.ndarray) -> np.ndarray:
        flat = total.reshape(-1)
        low, high = 0, len(flat)
        halvings = []
        distance = group.size // 2
        while distance >= 1:
            partner = group.index ^ distance
            middle = (low + high) // 2
            lower, upper = slice(low, middle), slice(middle, high)
            mine, theirs = (lower, upper) if group.index < partner else (upper, lower)
            received = await group.exchange(partner, flat[theirs], partner)
            await group.reduce(flat[mine], received)
            halvings.append((partner, mine, theirs))
            low, high = mine.start, mine.stop
            distance //= 2

        for partner, mine, theirs in reversed(halvings):
            flat[theirs] = await group.exchange(partner, flat[mine], partner)
        return total

    return await _with_guests(rank, array, _beyond_power_of_two(rank.size), among)


async def hierarchical_all_reduce(rank: Rank, array: np.ndarray, ranks_per_host: int) -> np.ndarray:
    """A ring inside each host and rings between the hosts, so that slow links carry only 1/k of the array per rank.

    ranks_per_host: k; ranks 0…k−1 share host 0, k…2k−1 host 1, and so on. The ranks of a last host that is not full
    hand their arrays to those of host 0, and get the sum back from them.
    Cost, for p = hk and equal chunks, with α, β inside a host and α', β' between hosts:
    2(k−1)α + 2((k−1)/k)nβ + ((k−1)/k)nγ + 2(h−1)α' + 2((h−1)/h)(n/k)β' + ((h−1)/h)(n/k)γ.
    Source: the two-level scheme of Jia et al., arXiv:1807.11205, with reduce-scatter and all-gather inside.
    """
    per_host = min(ranks_per_host, rank.size)
    in_full_hosts = rank.size - rank.size % per_host

    async def among(group: Rank, total: np.ndarray) -> np.ndarray:
        host, place = divmod(group.index, per_host)
        same_host = GroupRank(group, range(host * per_host, (host + 1) * per_host))
        same_place = GroupRank(group, range(place, in_full_hosts, per_host))
        chunk = await reduce_scatter(same_host, total.reshape(-1))
        chunk = await ring_all_reduce(same_place, chunk)
        return (await all_gather(same_host, chunk)).reshape(total.shape)

    proxies = {guest: guest - in_full_hosts for guest in range(in_full_hosts, rank.size)}
    return await _with_guests(rank, array, proxies, among)


def _beyond_power_of_two(size: int) -> dict[int, int]:
    """The proxy of each guest, so that 2^⌊lg p⌋ ranks remain: in the first pairs of neighbours the first is a guest."""
    too_many = size - (1 << (size.bit_length() - 1))
    return {guest: guest + 1 for guest in range(0, 2 * too_many, 2)}


async def _with_guests(
    rank: Rank,
    array: np.ndarray,
    proxies: dict[int, int],
    among: Callable[[Rank, np.ndarray], Awaitable[np.ndarray]],
) -> np.ndarray:
    """An all-reduce that a part of the ranks can do, with the guests, who are the others.

    A guest's proxy, one of that part, adds its array at the start and answers with the sum at the end. `proxies` is by
    guest, and `among` may change the array that it gets.
    """
    total, proxy = own_copy(array), proxies.get(rank.index)
    if proxy is not None:
        await rank.send(proxy, total)
        return await rank.receive(proxy)
    guests = [guest for guest in proxies if proxies[guest] == rank.index]
    for guest in guests:
        await rank.reduce(total, await rank.receive(guest))
    total = await among(GroupRank(rank, [index for index in range(rank.size) if index not in proxies]), total)
    for guest in guests:
        await rank.send(guest, total)
    return total
