"""The cost formulas: worked out by hand, in closed form from the papers, and as they run on the virtual cluster."""

from collections.abc import Callable
from math import floor, log2

import numpy as np
import pytest

from distlab import collectives, costs
from distlab.costs import Cost
from distlab.costs.formulas.cost import ceil_log2, floor_log2
from distlab.simulate import Network, Rank, Run, World

ALPHA, BETA, GAMMA = 5e-6, 1e-9, 3e-10
MEGABYTE = 1e6
SIZES = np.arange(1, 18)

# The formula, the program, and whether each rank starts with its own chunk instead of a whole array.
COLLECTIVES: dict[str, tuple[Callable[..., Cost], Callable, bool]] = {
    "broadcast_tree": (costs.broadcast_tree, collectives.broadcast, False),
    "reduce_tree": (costs.reduce_tree, collectives.reduce, False),
    "scatter_tree": (costs.scatter_tree, collectives.scatter, False),
    "gather_tree": (costs.gather_tree, collectives.gather, True),
    "all_gather_ring": (costs.all_gather_ring, collectives.all_gather, True),
    "reduce_scatter_ring": (costs.reduce_scatter_ring, collectives.reduce_scatter, False),
    "all_to_all": (costs.all_to_all, collectives.all_to_all, False),
} | {name: (formula, collectives.ALL_REDUCE[name], False) for name, formula in costs.ALL_REDUCE.items()}
FOLDING = {"recursive_doubling", "halving_doubling"}
# Where the root can receive while it adds, unless the tree is complete.
ADDING_ON_A_TREE = {"reduce_tree", "tree"}

# p, n, then steps, bytes on the path, bytes reduced and bytes sent by all ranks, worked out by hand.
BY_HAND = [
    ("broadcast_tree", 8, 10, 3, 30, 0, 70),
    ("broadcast_tree", 5, 10, 3, 30, 0, 40),
    ("reduce_tree", 8, 10, 3, 30, 30, 70),
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
    cost = COLLECTIVES[name][0](ranks, array_bytes)
    assert (cost.steps, cost.bytes_on_path, cost.bytes_reduced, cost.bytes_sent) == (steps, on_path, reduced, sent)
    assert cost.seconds(100.0, 10.0, 1.0) == 100 * steps + 10 * on_path + reduced


@pytest.mark.parametrize("name", COLLECTIVES)
def test_arrays_equal_numbers_and_one_rank_or_no_bytes_are_free(name: str) -> None:
    array_bytes = np.array([0.0, 1e3, 1e9])
    together = COLLECTIVES[name][0](SIZES[:, None], array_bytes)
    for field in ("steps", "bytes_on_path", "bytes_reduced", "bytes_sent", "largest_bytes_sent"):
        values = np.broadcast_to(getattr(together, field), (len(SIZES), 3))
        assert not values[0].any() and (field == "steps" or not values[:, 0].any())
        for row, column in np.ndindex(values.shape):
            alone = COLLECTIVES[name][0](int(SIZES[row]), float(array_bytes[column]))
            assert values[row, column] == getattr(alone, field)


def simulated_and_formula(name: str, size: int, network: Network, elements: int) -> tuple[Run, Cost]:
    formula, program, each_a_chunk = COLLECTIVES[name]
    whole = np.arange(elements, dtype=np.float64)
    inputs = np.array_split(whole, size) if each_a_chunk else [whole] * size
    return World(size, network).run(program, inputs), formula(size, whole.nbytes)


@pytest.mark.parametrize("gamma", [0.0, GAMMA])
@pytest.mark.parametrize("name", COLLECTIVES)
def test_bytes_and_times_are_those_of_the_virtual_cluster(name: str, gamma: float) -> None:
    """Exactly, but for numbers of ranks that are no power of two: there some formulas are bounds of the time."""
    for size in SIZES.tolist():
        # Elements that the size, and every power of two up to it, divides.
        run, cost = simulated_and_formula(name, size, Network(ALPHA, BETA, gamma), 48 * 16 * size)
        assert run.bytes_sent == pytest.approx(cost.bytes_sent, rel=1e-12)
        assert run.bytes_sent_by_rank.max() == pytest.approx(cost.largest_bytes_sent, rel=1e-12)
        seconds = cost.seconds(ALPHA, BETA, gamma)
        is_power_of_two = size & (size - 1) == 0
        if name in FOLDING and not is_power_of_two:
            # What ranks send that need not wait holds up the ports of those that fold: by two messages at most.
            two_messages = 2 * (ALPHA + BETA * 48 * 16 * size * 8)
            assert seconds * (1 - 1e-9) <= run.elapsed <= (seconds + two_messages) * (1 + 1e-9)
        elif name in ADDING_ON_A_TREE and gamma and not is_power_of_two:
            assert cost.seconds(ALPHA, BETA) < run.elapsed < seconds
        else:
            assert run.elapsed == pytest.approx(seconds, rel=1e-9)


@pytest.mark.parametrize("name", [name for name in COLLECTIVES if name not in FOLDING])
def test_uneven_chunks_cost_one_element_more_per_message_at_most(name: str) -> None:
    for size in (3, 8, 17):
        for elements in (1, size + 1, 101):
            run, cost = simulated_and_formula(name, size, Network(ALPHA, BETA), elements)
            seconds = cost.seconds(ALPHA, BETA)
            assert abs(run.elapsed - seconds) <= run.messages_by_rank.sum() * 8 * BETA + 1e-9 * seconds


def test_one_message_costs_what_the_model_says() -> None:
    async def program(rank: Rank, array: np.ndarray) -> None:
        await (rank.receive(0) if rank.index else rank.send(1, array))

    run = World(2, Network(ALPHA, BETA, GAMMA)).run(program, [np.zeros(1000)] * 2)
    assert run.elapsed == pytest.approx(costs.message(8000).seconds(ALPHA, BETA), rel=1e-9)


def test_each_rank_of_a_ring_sends_the_published_bytes() -> None:
    ranks = np.array([2, 4, 8, 10**6])
    per_rank = costs.all_reduce("ring", ranks, MEGABYTE).bytes_sent / ranks
    np.testing.assert_allclose(per_rank[:3], [MEGABYTE, 1.5 * MEGABYTE, 1.75 * MEGABYTE], rtol=1e-15)
    assert per_rank[3] == pytest.approx(2 * MEGABYTE, rel=1e-5)


@pytest.mark.parametrize("name", costs.ALL_REDUCE)
def test_no_all_reduce_sends_less_than_the_lower_bound(name: str) -> None:
    """Patarasuk and Yuan, theorem 1; all but recursive doubling reach it."""
    sent, bound = costs.all_reduce(name, SIZES, MEGABYTE).bytes_sent, 2 * (SIZES - 1) * MEGABYTE
    assert np.all(sent >= bound * (1 - 1e-12))
    if name != "recursive_doubling":
        np.testing.assert_allclose(sent, bound, rtol=1e-12)


def test_halving_doubling_costs_what_was_published() -> None:
    """Thakur et al., 4.5: for powers of two exactly, else no more."""
    for p in SIZES[1:].tolist():
        cost = costs.all_reduce("halving_doubling", p, MEGABYTE)
        if p & (p - 1) == 0:
            assert (cost.steps, cost.bytes_on_path) == (2 * log2(p), pytest.approx(2 * (p - 1) / p * MEGABYTE))
        else:
            published = (2 * (p - 1) / p + 2) * MEGABYTE
            assert cost.steps == 2 * floor(log2(p)) + 2
            assert 0.8 * published <= cost.bytes_on_path <= published


def test_short_messages_want_few_steps_and_long_ones_few_bytes() -> None:
    names = list(costs.ALL_REDUCE)
    seconds = {size: [costs.all_reduce(name, 64, size).seconds(1e-5, 1e-9) for name in names] for size in (8, 1e9)}
    assert names[int(np.argmin(seconds[8]))] == "recursive_doubling"
    assert names[int(np.argmin(seconds[1e9]))] == "halving_doubling"
    assert names[int(np.argmax(seconds[1e9]))] == "naive"


def test_logarithms_are_exact_next_to_powers_of_two() -> None:
    powers = 2.0 ** np.arange(1, 50)
    np.testing.assert_array_equal(floor_log2(powers), np.arange(1, 50))
    np.testing.assert_array_equal(floor_log2(powers - 1), np.arange(0, 49))
    np.testing.assert_array_equal(ceil_log2(powers), np.arange(1, 50))
    np.testing.assert_array_equal(ceil_log2(powers + 1), np.arange(2, 51))


@pytest.mark.parametrize(("ranks", "array_bytes"), [(0, 8), (1.5, 8), ([1, 2, 0], 8), (2, -1), (2, float("nan"))])
def test_impossible_ranks_and_bytes_are_refused(ranks: object, array_bytes: float) -> None:
    with pytest.raises(ValueError, match="a number of"):
        costs.all_reduce("ring", ranks, array_bytes)
