"""The α–β–γ cost of every collective but the all-reduce (that is `all_reduces`).

Every function takes `ranks` p (whole numbers) and `array_bytes` n (bytes), numbers or arrays that fit together, and
gives a `Cost` of their common shape. n is the size of the whole array: what the root holds in a broadcast, what a rank
holds before a reduce, reduce-scatter or all-to-all and after an all-gather, what the root holds before a scatter and
after a gather. All raise ValueError for impossible ranks or bytes (see `cost.checked`).

Wherever n is cut into p chunks, the formula takes chunks of n/p bytes: exact when p divides the number of elements.
Else it is an idealisation, as the largest of the real chunks holds up to one element more.

Sources: T for Thakur, Rabenseifner and Gropp, IJHPCA 19(1):49-66, 2005; C for Chan, Heimlich, Purkayastha and van de
Geijn, Concurrency and Computation 19(13):1749-1783, 2007; M for the comments of MPICH's source (src/mpi/coll).
"""

import numpy as np
from numpy.typing import ArrayLike

from distlab.costs.formulas.cost import Cost, Numbers, ceil_log2, checked


def message(array_bytes: ArrayLike) -> Cost:
    """One message from one rank to another: α + nβ (Hockney's model)."""
    ranks, n = checked(2, array_bytes)
    return Cost(ranks, 1 + 0 * n, n, 0 * n, n, n)


def barrier(ranks: ArrayLike) -> Cost:
    """The dissemination barrier: ⌈lg p⌉ α (Hensgen, Finkel and Manber, IJPP 17(1), 1988; M)."""
    p, n = checked(ranks)
    return Cost(p, ceil_log2(p), n, n, n, n)


def broadcast_tree(ranks: ArrayLike, array_bytes: ArrayLike) -> Cost:
    """Binomial tree: ⌈lg p⌉ (α + nβ); for short messages (T, section 4.2; C, section 4)."""
    p, n = checked(ranks, array_bytes)
    steps = ceil_log2(p)
    return Cost(p, steps, steps * n, 0 * n, (p - 1) * n, steps * n)


def broadcast_long(ranks: ArrayLike, array_bytes: ArrayLike) -> Cost:
    """Scatter by a tree, then a ring all-gather: (⌈lg p⌉ + p − 1) α + 2 ((p−1)/p) nβ; for long messages (T, 4.2)."""
    return scatter_tree(ranks, array_bytes) + all_gather_ring(ranks, array_bytes)


def reduce_tree(ranks: ArrayLike, array_bytes: ArrayLike) -> Cost:
    """Binomial tree: ⌈lg p⌉ (α + nβ + nγ) (T, section 4.4).

    Exact when p is a power of two or γ = 0; else an upper bound, as the root can then receive while it still adds.
    """
    p, n = checked(ranks, array_bytes)
    steps = ceil_log2(p)
    return Cost(p, steps, steps * n, steps * n, (p - 1) * n, n * (p > 1))


def scatter_linear(ranks: ArrayLike, array_bytes: ArrayLike) -> Cost:
    """The root sends every rank its chunk, one after another: (p−1) α + ((p−1)/p) nβ."""
    p, n = checked(ranks, array_bytes)
    moved = (p - 1) / p * n
    return Cost(p, p - 1, moved, 0 * n, moved, moved)


def scatter_tree(ranks: ArrayLike, array_bytes: ArrayLike) -> Cost:
    """Binomial tree, each message holding the chunks of a whole subtree: ⌈lg p⌉ α + ((p−1)/p) nβ (C, section 4; M).

    At each stage the holder of a range of ranks hands over the smaller half. All ranks together send (n/2) lg p bytes
    for a power of two.
    """
    p, n = checked(ranks, array_bytes)
    moved = (p - 1) / p * n
    return Cost(p, ceil_log2(p), moved, 0 * n, _chunks_through_tree(p) / p * n, moved)


def gather_linear(ranks: ArrayLike, array_bytes: ArrayLike) -> Cost:
    """Every rank sends its chunk to the root, whose port takes one after another: (p−1) α + ((p−1)/p) nβ."""
    p, n = checked(ranks, array_bytes)
    moved = (p - 1) / p * n
    return Cost(p, p - 1, moved, 0 * n, moved, n / p * (p > 1))


def gather_tree(ranks: ArrayLike, array_bytes: ArrayLike) -> Cost:
    """The tree of `scatter_tree` the other way round: ⌈lg p⌉ α + ((p−1)/p) nβ (C, section 4; M)."""
    p, n = checked(ranks, array_bytes)
    # Beside the root, which sends nothing, the rank that answers for the other half of all ranks sends most.
    return Cost(p, ceil_log2(p), (p - 1) / p * n, 0 * n, _chunks_through_tree(p) / p * n, np.floor(p / 2) / p * n)


def all_gather_ring(ranks: ArrayLike, array_bytes: ArrayLike) -> Cost:
    """p−1 steps round the ring: (p−1) α + ((p−1)/p) nβ (T, section 4.1)."""
    p, n = checked(ranks, array_bytes)
    moved = (p - 1) / p * n
    return Cost(p, p - 1, moved, 0 * n, p * moved, moved)


def reduce_scatter_ring(ranks: ArrayLike, array_bytes: ArrayLike) -> Cost:
    """p−1 steps round the ring: (p−1) α + ((p−1)/p) nβ + ((p−1)/p) nγ (C, section 4; Patarasuk and Yuan 2009)."""
    p, n = checked(ranks, array_bytes)
    moved = (p - 1) / p * n
    return Cost(p, p - 1, moved, moved, p * moved, moved)


def all_to_all(ranks: ArrayLike, array_bytes: ArrayLike) -> Cost:
    """Pairwise exchange, one partner per step: (p−1) α + ((p−1)/p) nβ (T, section 4.3, long messages)."""
    p, n = checked(ranks, array_bytes)
    moved = (p - 1) / p * n
    return Cost(p, p - 1, moved, 0 * n, p * moved, moved)


def _chunks_through_tree(ranks: Numbers) -> Numbers:
    """How many chunks the messages of a binomial scatter or gather hold together, per number of ranks.

    c(p) = ⌊p/2⌋ + c(⌊p/2⌋) + c(⌈p/2⌉): half of the chunks move, then each half is treated alike. The same sum counts
    the ones among the binary digits of 0 … p−1 (OEIS A000788), which needs no recursion.
    """
    ones = np.zeros_like(ranks)
    for digit in np.exp2(np.arange(int(np.max(ceil_log2(ranks), initial=0)))):
        ones = ones + np.floor(ranks / (2 * digit)) * digit + np.maximum(ranks % (2 * digit) - digit, 0)
    return ones
