"""The α–β–γ cost of collectives, and of the all-reduce by algorithm.

Every function takes `ranks` p (whole numbers) and `array_bytes` n (bytes), numbers or arrays that fit together, and
gives a `Cost` of their common shape. n is the size of the whole array: what the root has in a broadcast, what a rank
has before a reduce or reduce-scatter and after an all-gather. All raise ValueError for impossible ranks or bytes (see
`cost.checked`).

Wherever n is cut into p chunks, the formula takes chunks of n/p bytes: exact when p divides the number of elements.
Otherwise it is an idealisation, as the largest of the real chunks has up to one element more.

No all-reduce lets the ranks send fewer than 2(p−1)n bytes together (P, theorem 1): all but the trees, recursive
doubling and the naive way come down to 2((p−1)/p)n on each rank when p is a power of two.

Sources: T for Thakur, Rabenseifner and Gropp, IJHPCA 19(1):49-66, 2005; C for Chan, Heimlich, Purkayastha and van de
Geijn, Concurrency and Computation 19(13):1749-1783, 2007; P for Patarasuk and Yuan, JPDC 69(2):117-124, 2009; M for the
comments of MPICH's source (src/mpi/coll).
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from distlab.costs.formulas.cost import Cost, ceil_log2, checked, floor_log2
from distlab.runtime.lookups import look_up


def message(array_bytes: ArrayLike) -> Cost:
    """One message from one rank to another: α + nβ (Hockney's model)."""
    _, n = checked(2, array_bytes)
    return Cost(1 + 0 * n, n, 0 * n, n, n)


def broadcast_tree(ranks: ArrayLike, array_bytes: ArrayLike) -> Cost:
    """Binomial tree: ⌈lg p⌉ (α + nβ); for short messages (T, section 4.2; C, section 4)."""
    p, n = checked(ranks, array_bytes)
    steps = ceil_log2(p)
    return Cost(steps, steps * n, 0 * n, (p - 1) * n, steps * n)


def reduce_tree(ranks: ArrayLike, array_bytes: ArrayLike) -> Cost:
    """Binomial tree: ⌈lg p⌉ (α + nβ + nγ) (T, section 4.4).

    Exact when p is a power of two or γ = 0; else an upper bound, as the root can then receive while it still adds.
    """
    p, n = checked(ranks, array_bytes)
    steps = ceil_log2(p)
    return Cost(steps, steps * n, steps * n, (p - 1) * n, n * (p > 1))


def all_gather_ring(ranks: ArrayLike, array_bytes: ArrayLike) -> Cost:
    """p−1 steps round the ring: (p−1) α + ((p−1)/p) nβ (T, section 4.1)."""
    p, n = checked(ranks, array_bytes)
    moved = (p - 1) / p * n
    return Cost(p - 1, moved, 0 * n, p * moved, moved)


def reduce_scatter_ring(ranks: ArrayLike, array_bytes: ArrayLike) -> Cost:
    """p−1 steps round the ring: (p−1) α + ((p−1)/p) nβ + ((p−1)/p) nγ (C, section 4; P)."""
    p, n = checked(ranks, array_bytes)
    moved = (p - 1) / p * n
    return Cost(p - 1, moved, moved, p * moved, moved)


def all_reduce_naive(ranks: ArrayLike, array_bytes: ArrayLike) -> Cost:
    """Every rank sends its array to rank 0, which adds them and sends each rank the sum: 2(p−1) (α + nβ) + nγ.

    Rank 0 has one port each way, so that p−1 messages follow one another, twice. It adds an array while the next comes
    in, so that only the last addition counts; a lower bound where adding takes longer than receiving (nγ > α + nβ).
    """
    p, n = checked(ranks, array_bytes)
    return Cost(2 * (p - 1), 2 * (p - 1) * n, n * (p > 1), 2 * (p - 1) * n, (p - 1) * n)


def all_reduce_tree(ranks: ArrayLike, array_bytes: ArrayLike) -> Cost:
    """Reduce up a binomial tree, broadcast down it: 2⌈lg p⌉ (α + nβ) + ⌈lg p⌉ nγ (T, 4.2 and 4.4).

    With γ > 0 and p no power of two an upper bound, as `reduce_tree` is. Rank 0 sends most.
    """
    p, n = checked(ranks, array_bytes)
    both = reduce_tree(p, n) + broadcast_tree(p, n)
    # The root sends in the broadcast alone, ⌈lg p⌉ times; every other rank once more than in the broadcast, no more.
    return Cost(both.steps, both.bytes_on_path, both.bytes_reduced, both.bytes_sent, ceil_log2(p) * n)


def all_reduce_ring(ranks: ArrayLike, array_bytes: ArrayLike) -> Cost:
    """Ring reduce-scatter, ring all-gather: 2(p−1) α + 2((p−1)/p) nβ + ((p−1)/p) nγ (P, section 3).

    Every rank sends 2((p−1)/p)n bytes: n for two ranks, 1.5n for four, 1.75n for eight, and never 2n.
    """
    return reduce_scatter_ring(ranks, array_bytes) + all_gather_ring(ranks, array_bytes)


def all_reduce_recursive_doubling(ranks: ArrayLike, array_bytes: ArrayLike) -> Cost:
    """Whole arrays exchanged with the ranks at distance 1, 2, 4, …: lg p (α + nβ + nγ) (T, 4.5).

    When p is no power of two, p − 2^⌊lg p⌋ ranks first hand their array to a neighbour and get the result at the end:
    (⌊lg p⌋ + 2) (α + nβ) + (⌊lg p⌋ + 1) nγ (M). That is a lower bound: ranks that need not wait for a neighbour's array
    send at once, and their messages hold up its port.
    """
    p, n = checked(ranks, array_bytes)
    doublings = floor_log2(p)
    core = np.exp2(doublings)
    folded = p - core
    steps, added = doublings + 2 * (folded > 0), (doublings + (folded > 0)) * n
    return Cost(steps, steps * n, added, (core * doublings + 2 * folded) * n, added)


def all_reduce_halving_doubling(ranks: ArrayLike, array_bytes: ArrayLike) -> Cost:
    """Rabenseifner's algorithm: reduce-scatter by recursive halving, all-gather by recursive doubling.

    2 lg p α + 2((p−1)/p) nβ + ((p−1)/p) nγ for a power of two (T, 4.5). Else p − q ranks, q = 2^⌊lg p⌋, first hand
    their whole array to a neighbour and get the result at the end, which takes
    (2⌊lg p⌋ + 2) α + (2(q−1)/q + 2) nβ + (1 + (q−1)/q) nγ.
    T and M print p where q stands in the fractions, which is a little more; q is the number of ranks that take part.
    For p other than a power of two a lower bound, as in `all_reduce_recursive_doubling`.
    """
    p, n = checked(ranks, array_bytes)
    core = np.exp2(floor_log2(p))
    folded = p - core
    extra = folded > 0
    half_way = (core - 1) / core * n
    steps, on_path = 2 * floor_log2(p) + 2 * extra, 2 * half_way + 2 * extra * n
    sent = core * 2 * half_way + 2 * folded * n
    return Cost(steps, on_path, half_way + extra * n, sent, 2 * half_way + extra * n)


ALL_REDUCE: dict[str, Callable[[ArrayLike, ArrayLike], Cost]] = {
    "naive": all_reduce_naive,
    "tree": all_reduce_tree,
    "ring": all_reduce_ring,
    "recursive_doubling": all_reduce_recursive_doubling,
    "halving_doubling": all_reduce_halving_doubling,
}
"""Every algorithm for ranks that are equally far from each other; `hierarchical` has those for ranks on hosts."""


def all_reduce(algorithm: str, ranks: ArrayLike, array_bytes: ArrayLike) -> Cost:
    """The cost of the all-reduce with this name in `ALL_REDUCE`; ValueError, with the names, for another."""
    return look_up(ALL_REDUCE, algorithm, "all-reduce")(ranks, array_bytes)
