"""The cost of an all-reduce where ranks share hosts: what goes over links inside hosts, what over those between them.

Ranks are numbered host by host, k to a host; the last host may have fewer. Every host has one network connection, which
its ranks share; inside a host every rank has its own. Every function takes `ranks` p and `array_bytes` n (numbers or
arrays that fit together) and `ranks_per_host` k, and gives `Levels`.

These are estimates, not identities. They take k = min(p, k) ranks on each of h = ⌈p/k⌉ hosts, so a last host with fewer
ranks counts as full; and where several ranks of a host send at once, the bytes of all of them count for its connection.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from distlab.costs.formulas.collectives import all_reduce_halving_doubling, all_reduce_ring, all_reduce_tree
from distlab.costs.formulas.cost import Cost, Numbers, checked, floor_log2
from distlab.simulate import Link

AllReduce = Callable[[ArrayLike, ArrayLike], Cost]


@dataclass(frozen=True)
class Levels:
    """Steps and bytes on the critical path, inside hosts and between them, and bytes added; float64, all of one shape.

    `bytes_between` are those that pass one host's connection in one direction, whichever of its ranks send them.
    """

    steps_inside: Numbers
    bytes_inside: Numbers
    steps_between: Numbers
    bytes_between: Numbers
    bytes_reduced: Numbers

    def seconds(self, inside: Link, between: Link, seconds_per_byte_reduced: float = 0.0) -> Numbers:
        """The time; `between` is the connection of a whole host."""
        latencies = self.steps_inside * inside.latency + self.steps_between * between.latency
        moving = self.bytes_inside * inside.seconds_per_byte + self.bytes_between * between.seconds_per_byte
        return latencies + moving + self.bytes_reduced * seconds_per_byte_reduced


def naive(ranks: ArrayLike, array_bytes: ArrayLike, ranks_per_host: int) -> Levels:
    """Rank 0 receives from every other rank and sends to every other rank, whole arrays, one after another."""
    p, n, k, _ = _hosts(ranks, array_bytes, ranks_per_host)
    inside, between = 2 * (k - 1), 2 * (p - k)
    return Levels(inside, inside * n, between, between * n, n * (p > 1))


def tree(ranks: ArrayLike, array_bytes: ArrayLike, ranks_per_host: int) -> Levels:
    """Binomial trees inside hosts and one between them; one rank of each host uses its connection."""
    _, n, k, hosts = _hosts(ranks, array_bytes, ranks_per_host)
    return _levels(all_reduce_tree(k, n), all_reduce_tree(hosts, n), at_once=1)


def ring(ranks: ArrayLike, array_bytes: ArrayLike, ranks_per_host: int) -> Levels:
    """One ring through all ranks, which leaves and enters every host once, as NCCL builds it.

    Latency is counted along the way of a chunk round the ring, 2(h−1) times between hosts and otherwise inside; bytes
    where the slowest links are, between hosts as soon as there are two. NCCL chooses its algorithms by this same model
    (src/graph/tuning.cc, ncclTopoTuneModel); it holds because NCCL sends the next part of a chunk while the last is on
    its way. A ring that waits for each message (`distlab.collectives`) instead pays the slowest latency in every step.
    """
    p, n, _, hosts = _hosts(ranks, array_bytes, ranks_per_host)
    cost = all_reduce_ring(p, n)
    between = 2 * (hosts - 1)
    several = hosts > 1
    on_path = cost.bytes_on_path
    return Levels(cost.steps - between, on_path * ~several, between, on_path * several, cost.bytes_reduced)


def recursive_doubling(ranks: ArrayLike, array_bytes: ArrayLike, ranks_per_host: int) -> Levels:
    """Whole arrays exchanged at doubling distances; from distance k on all ranks of a host use its connection at once.

    Ranks beyond a power of two hand their arrays to a neighbour and get the result back, counted between hosts as soon
    as there are two.
    """
    p, n, k, hosts = _hosts(ranks, array_bytes, ranks_per_host)
    doublings = floor_log2(p)
    inside = np.minimum(floor_log2(k), doublings)
    between = doublings - inside
    extra = (p > np.exp2(doublings)).astype(np.float64)
    inside, folded_between = inside + 2 * extra * (hosts == 1), 2 * extra * (hosts > 1)
    reduced = (doublings + extra) * n
    return Levels(inside, inside * n, between + folded_between, (between * k + folded_between) * n, reduced)


def two_levels(
    inside: AllReduce, between: AllReduce, ranks: ArrayLike, array_bytes: ArrayLike, ranks_per_host: int
) -> Levels:
    """One algorithm inside hosts leaves each rank n/k bytes, and k ranks at once exchange those between hosts."""
    _, n, k, hosts = _hosts(ranks, array_bytes, ranks_per_host)
    return _levels(inside(k, n), between(hosts, n / k), at_once=k)


ALGORITHMS: dict[str, Callable[[ArrayLike, ArrayLike, int], Levels]] = {
    "naive": naive,
    "tree": tree,
    "ring": ring,
    "recursive_doubling": recursive_doubling,
    # Rabenseifner's algorithm, nearest ranks first as in MPICH, so that the large messages stay inside hosts. (The
    # program in `distlab.collectives` begins with the farthest ranks, which is as good where all are equally far.)
    # Numbers of hosts or of ranks on a host that are no powers of two pay for folding.
    "halving_doubling": partial(two_levels, all_reduce_halving_doubling, all_reduce_halving_doubling),
    # Ring reduce-scatter inside hosts, ring all-reduces between them (one per chunk, at once), ring all-gather inside:
    # 2(k−1) α + 2((k−1)/k) nβ inside and 2(h−1) α + 2((h−1)/h) nβ between, fewer steps than one ring through all ranks.
    # Exact, on the virtual cluster too, when every host is full and hk divides the number of elements.
    "hierarchical": partial(two_levels, all_reduce_ring, all_reduce_ring),
    # Rings inside hosts, Rabenseifner's algorithm between them. Goyal et al. (arXiv:1706.02677, section 4) reduce
    # inside each server, run halving-doubling between the servers and broadcast inside each; their halving-doubling was
    # up to three times faster than the ring on 32 servers.
    "hierarchical_halving_doubling": partial(two_levels, all_reduce_ring, all_reduce_halving_doubling),
}
"""Every all-reduce that `predict` knows."""


def hosts_of(ranks: ArrayLike, ranks_per_host: int) -> Numbers:
    """⌈p/k⌉: how many hosts that many ranks need."""
    return np.ceil(np.asarray(ranks, np.float64) / ranks_per_host)[()]


def _hosts(ranks: ArrayLike, array_bytes: ArrayLike, ranks_per_host: int) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    p, n = checked(ranks, array_bytes)
    return p, n, np.minimum(p, ranks_per_host), hosts_of(p, ranks_per_host)


def _levels(inside: Cost, between: Cost, at_once: Numbers | int) -> Levels:
    """`between` is what one rank does; `at_once` ranks of each host do so at the same time."""
    reduced = inside.bytes_reduced + between.bytes_reduced
    return Levels(inside.steps, inside.bytes_on_path, between.steps, at_once * between.bytes_on_path, reduced)
