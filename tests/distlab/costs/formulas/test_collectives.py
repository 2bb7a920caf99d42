"""The cost formulas: worked out by hand, in closed form from the papers, and as they run on the virtual cluster."""

from collections.abc import Callable

import numpy as np
import pytest

from distlab import collectives, costs
from distlab.costs import Cost
from distlab.simulate import Network, World

ALPHA, BETA, GAMMA = 5e-6, 1e-9, 3e-10

# The formula, the program, and whether each rank starts with its own chunk instead of a whole array.
COLLECTIVES: dict[str, tuple[Callable[..., Cost], Callable, bool]] = {
    "broadcast_tree": (costs.broadcast_tree, collectives.broadcast, False),
    "reduce_tree": (costs.reduce_tree, collectives.reduce, False),
    "all_gather_ring": (costs.all_gather_ring, collectives.all_gather, True),
    "reduce_scatter_ring": (costs.reduce_scatter_ring, collectives.reduce_scatter, False),
    # As many messages and bytes, one for each rank.
    "all_to_all": (costs.all_gather_ring, collectives.all_to_all, False),
} | {name: (formula, collectives.ALL_REDUCE[name], False) for name, formula in costs.ALL_REDUCE.items()}
FOLDING = {"recursive_doubling", "halving_doubling"}
# Where the root can receive while it adds, unless the tree is complete.
ADDING_ON_A_TREE = {"reduce_tree", "tree"}

# p, n, then steps, bytes on the path, bytes reduced and bytes sent by all ranks, worked out by hand.
BY_HAND = [
    ("broadcast_tree", 5, 10, 3, 30, 0, 40),
    ("reduce_tree", 8, 10, 3, 30, 30, 70),
    ("all_gather_ring", 4, 8, 3, 6, 0, 24),
    ("reduce_scatter_ring", 4, 8, 3, 6, 6, 24),
    ("naive", 4, 10, 6, 60, 10, 60),
    ("tree", 8, 10, 6, 60, 30, 140),
    ("ring", 4, 8, 6, 12, 6, 48),
    ("recursive_doubling", 6, 10, 2 + 2, 40, 30, 4 * 20 + 2 * 2 * 10),
    ("halving_doubling", 6, 8, 4 + 2, 12 + 16, 6 + 8, 4 * 12 + 2 * 16),
]


def test_formulas_by_hand() -> None:
    for name, ranks, array_bytes, steps, on_path, reduced, sent in BY_HAND:
        cost = COLLECTIVES[name][0](ranks, array_bytes)
        assert (cost.steps, cost.bytes_on_path, cost.bytes_reduced, cost.bytes_sent) == (steps, on_path, reduced, sent)
        assert cost.seconds(100.0, 10.0, 1.0) == 100 * steps + 10 * on_path + reduced


@pytest.mark.parametrize("gamma", [0.0, GAMMA])
@pytest.mark.parametrize("name", COLLECTIVES)
def test_bytes_and_times_are_those_of_the_virtual_cluster(name: str, gamma: float) -> None:
    """Exactly, but for numbers of ranks that are no power of two: there some formulas are bounds of the time."""
    formula, program, each_a_chunk = COLLECTIVES[name]
    for size in (1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 17):
        # Elements that the size, and every power of two up to it, divides.
        whole = np.arange(48 * 16 * size, dtype=np.float64)
        inputs = np.array_split(whole, size) if each_a_chunk else [whole] * size
        run, cost = World(size, Network(ALPHA, BETA, gamma)).run(program, inputs), formula(size, whole.nbytes)
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


@pytest.mark.parametrize(("ranks", "array_bytes"), [([1, 2, 0], 8), (1.5, 8), (2, -1)])
def test_impossible_ranks_and_bytes_are_refused(ranks: object, array_bytes: float) -> None:
    with pytest.raises(ValueError, match="a number of"):
        costs.all_reduce("ring", ranks, array_bytes)
