"""The cost formulas against hand-computed values, published values and bounds."""

from collections.abc import Callable

import numpy as np
import pytest

from distlab import costs
from distlab.costs import Cost

MEGABYTE = 1e6
SIZES = np.arange(1, 18)

COLLECTIVES: dict[str, Callable[..., Cost]] = {
    "broadcast_tree": costs.broadcast_tree,
    "broadcast_long": costs.broadcast_long,
    "reduce_tree": costs.reduce_tree,
    "scatter_linear": costs.scatter_linear,
    "scatter_tree": costs.scatter_tree,
    "gather_linear": costs.gather_linear,
    "gather_tree": costs.gather_tree,
    "all_gather_ring": costs.all_gather_ring,
    "reduce_scatter_ring": costs.reduce_scatter_ring,
    "all_to_all": costs.all_to_all,
} | costs.ALL_REDUCE


# p, n, then steps, bytes on the path, bytes reduced and bytes sent by all ranks, worked out by hand.
BY_HAND = [
    ("broadcast_tree", 8, 10, 3, 30, 0, 70),
    ("broadcast_tree", 5, 10, 3, 30, 0, 40),
    ("broadcast_long", 8, 8, 3 + 7, 14, 0, 12 + 56),
    ("reduce_tree", 8, 10, 3, 30, 30, 70),
    ("scatter_linear", 4, 8, 3, 6, 0, 6),
    ("scatter_tree", 4, 8, 2, 6, 0, 8),
    ("scatter_tree", 3, 9, 2, 6, 0, 6),
    ("gather_tree", 5, 10, 3, 8, 0, 10),
    ("all_gather_ring", 4, 8, 3, 6, 0, 24),
    ("reduce_scatter_ring", 4, 8, 3, 6, 6, 24),
    ("all_to_all", 4, 8, 3, 6, 0, 24),
    ("naive", 4, 10, 6, 60, 10, 60),
    ("tree", 8, 10, 6, 60, 30, 140),
    ("ring", 4, 8, 6, 12, 6, 48),
    ("recursive_doubling", 8, 10, 3, 30, 30, 240),
    ("recursive_doubling", 6, 10, 2 + 2, 40, 30, 4 * 20 + 2 * 2 * 10),
    ("halving_doubling", 8, 8, 6, 14, 7, 112),
    ("halving_doubling", 6, 8, 4 + 2, 12 + 16, 6 + 8, 4 * 12 + 2 * 16),
]


@pytest.mark.parametrize(("name", "ranks", "array_bytes", "steps", "on_path", "reduced", "sent"), BY_HAND)
def test_formulas_by_hand(
    name: str, ranks: int, array_bytes: int, steps: int, on_path: int, reduced: int, sent: int
) -> None:
    cost = COLLECTIVES[name](ranks, array_bytes)
    assert (cost.steps, cost.bytes_on_path, cost.bytes_reduced, cost.bytes_sent) == (steps, on_path, reduced, sent)
    assert cost.seconds(100.0, 10.0, 1.0) == 100 * steps + 10 * on_path + reduced


@pytest.mark.parametrize("name", COLLECTIVES)
def test_one_rank_and_no_bytes_are_free(name: str) -> None:
    alone = COLLECTIVES[name](1, MEGABYTE)
    assert alone.steps == alone.bytes_on_path == alone.bytes_reduced == alone.bytes_sent == 0
    assert alone.largest_bytes_sent == 0
    nothing = COLLECTIVES[name](SIZES, 0)
    assert np.all(nothing.bytes_on_path + nothing.bytes_sent + nothing.bytes_reduced == 0)


@pytest.mark.parametrize("name", COLLECTIVES)
def test_arrays_equal_numbers(name: str) -> None:
    ranks, array_bytes = SIZES[:, None], np.array([0.0, 1.0, 1e3, 1e9])
    together = COLLECTIVES[name](ranks, array_bytes)
    for field in ("steps", "bytes_on_path", "bytes_reduced", "bytes_sent", "largest_bytes_sent"):
        values = np.broadcast_to(getattr(together, field), (len(SIZES), 4))
        for row, column in np.ndindex(values.shape):
            alone = COLLECTIVES[name](int(SIZES[row]), float(array_bytes[column]))
            assert values[row, column] == getattr(alone, field)


@pytest.mark.parametrize("name", COLLECTIVES)
def test_more_bytes_never_cost_less(name: str) -> None:
    seconds = COLLECTIVES[name](SIZES[:, None], np.logspace(0, 9, 30)).seconds(1e-6, 1e-9, 1e-10)
    assert np.all(np.diff(seconds, axis=1) >= 0)


@pytest.mark.parametrize("name", COLLECTIVES)
def test_more_ranks_never_send_fewer_bytes(name: str) -> None:
    cost = COLLECTIVES[name](SIZES, MEGABYTE)
    if name not in ("scatter_tree", "gather_tree"):  # 17 ranks have a chunk that is 1/17 and not 1/16 of the array
        assert np.all(np.diff(cost.bytes_sent) >= -1e-6)
    assert np.all(cost.largest_bytes_sent >= cost.bytes_sent / SIZES - 1e-6)


def test_each_rank_of_a_ring_sends_the_published_bytes() -> None:
    ranks = np.array([2, 4, 8, 10**6])
    per_rank = costs.all_reduce("ring", ranks, MEGABYTE).bytes_sent / ranks
    np.testing.assert_allclose(per_rank[:3], [MEGABYTE, 1.5 * MEGABYTE, 1.75 * MEGABYTE], rtol=1e-15)
    assert per_rank[3] == pytest.approx(2 * MEGABYTE, rel=1e-5)


@pytest.mark.parametrize("name", costs.ALL_REDUCE)
def test_no_all_reduce_sends_less_than_the_lower_bound(name: str) -> None:
    cost = costs.all_reduce(name, SIZES, MEGABYTE)
    bound = 2 * (SIZES - 1) * MEGABYTE
    assert np.all(cost.bytes_sent >= bound * (1 - 1e-12))
    if name != "recursive_doubling":
        np.testing.assert_allclose(cost.bytes_sent, bound, rtol=1e-12)


def test_halving_doubling_costs_no_more_than_the_published_formula() -> None:
    p = SIZES[(SIZES & (SIZES - 1)) != 0]
    cost = costs.all_reduce("halving_doubling", p, MEGABYTE)
    steps = 2 * np.floor(np.log2(p)) + 2
    np.testing.assert_array_equal(cost.steps, steps)
    published = (2 * (p - 1) / p + 2) * MEGABYTE
    assert np.all(cost.bytes_on_path <= published)
    assert np.all(cost.bytes_on_path >= 0.8 * published)


def test_powers_of_two_make_halving_doubling_a_ring_with_fewer_steps() -> None:
    p = 2 ** np.arange(1, 11)
    ring, halving = (costs.all_reduce(name, p, MEGABYTE) for name in ("ring", "halving_doubling"))
    np.testing.assert_allclose(halving.bytes_on_path, ring.bytes_on_path)
    np.testing.assert_allclose(halving.bytes_reduced, ring.bytes_reduced)
    np.testing.assert_array_equal(halving.steps, 2 * np.log2(p))


def test_short_messages_want_few_steps_and_long_ones_few_bytes() -> None:
    names = list(costs.ALL_REDUCE)
    seconds = {size: [costs.all_reduce(name, 64, size).seconds(1e-5, 1e-9) for name in names] for size in (8, 1e9)}
    assert names[int(np.argmin(seconds[8]))] == "recursive_doubling"
    assert names[int(np.argmin(seconds[1e9]))] == "halving_doubling"
    assert names[int(np.argmax(seconds[1e9]))] == "naive"


@pytest.mark.parametrize("ranks", [0, -1, 1.5, float("nan"), float("inf"), [1, 2, 0]])
def test_impossible_ranks_are_refused(ranks: object) -> None:
    with pytest.raises(ValueError, match="number of ranks is a whole number of at least 1"):
        costs.all_reduce("ring", ranks, 8)


@pytest.mark.parametrize("array_bytes", [-1, float("nan"), float("inf")])
def test_impossible_bytes_are_refused(array_bytes: float) -> None:
    with pytest.raises(ValueError, match="number of bytes is finite and at least 0"):
        costs.all_reduce("ring", 2, array_bytes)


def test_an_unknown_all_reduce_is_refused_with_the_names() -> None:
    with pytest.raises(ValueError, match="'rings'; there are naive, tree, ring"):
        costs.all_reduce("rings", 2, 8)
