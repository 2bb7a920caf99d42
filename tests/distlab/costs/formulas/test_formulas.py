"""The cost formulas against the collectives as they run on the virtual cluster: times, bytes and the busiest rank."""

from collections.abc import Callable, Sequence
from functools import partial
from math import ceil, floor, log2

import numpy as np
import pytest

from distlab import collectives, costs
from distlab.costs import Cost
from distlab.costs.formulas.hierarchical import hierarchical
from distlab.simulate import Link, Network, Run, World
from tests.distlab.collectives.collective_inputs import EXACTLY, NETWORK, SIZES

ALPHA, BETA, GAMMA = 5e-6, 1e-9, 3e-10
ELEMENTS = 48
ALL_SIZES = range(1, 18)
WITHOUT_ADDING = Network(latency=ALPHA, seconds_per_byte=BETA)
WITH_ADDING = Network(latency=ALPHA, seconds_per_byte=BETA, seconds_per_byte_reduced=GAMMA)

Case = tuple[Callable, Callable[..., Cost], bool]

# The program, the formula, and whether each rank starts with its own chunk instead of a whole array.
COLLECTIVES: dict[str, Case] = {
    "broadcast": (collectives.broadcast, costs.broadcast_tree, False),
    "reduce": (collectives.reduce, costs.reduce_tree, False),
    "scatter": (collectives.scatter, costs.scatter_tree, False),
    "gather": (collectives.gather, costs.gather_tree, True),
    "all-gather": (collectives.all_gather, costs.all_gather_ring, True),
    "reduce-scatter": (collectives.reduce_scatter, costs.reduce_scatter_ring, False),
    "all-to-all": (collectives.all_to_all, costs.all_to_all, False),
    "naive all-reduce": (collectives.naive_all_reduce, costs.ALL_REDUCE["naive"], False),
    "tree all-reduce": (collectives.tree_all_reduce, costs.ALL_REDUCE["tree"], False),
    "ring all-reduce": (collectives.ring_all_reduce, costs.ALL_REDUCE["ring"], False),
    "recursive doubling": (
        collectives.recursive_doubling_all_reduce,
        costs.ALL_REDUCE["recursive_doubling"],
        False,
    ),
    "halving-doubling": (collectives.halving_doubling_all_reduce, costs.ALL_REDUCE["halving_doubling"], False),
}
FOLDING = {"recursive doubling", "halving-doubling"}
# Where the root can receive while it adds, unless the tree is complete.
ADDING_ON_A_TREE = {"reduce", "tree all-reduce"}


def inputs_of(size: int, each_a_chunk: bool, elements: int | None = None) -> list[np.ndarray]:
    """One array per rank; by default of a length that the size, and every power of two up to it, divides."""
    whole = np.arange(ELEMENTS * 16 * size if elements is None else elements, dtype=np.float64)
    return np.array_split(whole, size) if each_a_chunk else [whole] * size


def bytes_of(inputs: Sequence[np.ndarray], each_a_chunk: bool) -> int:
    return sum(array.nbytes for array in inputs) if each_a_chunk else inputs[0].nbytes


def simulated_and_formula(name: str, size: int, network: Network, elements: int | None = None) -> tuple[Run, Cost]:
    program, formula, each_a_chunk = COLLECTIVES[name]
    inputs = inputs_of(size, each_a_chunk, elements)
    return World(size, network).run(program, inputs), formula(size, bytes_of(inputs, each_a_chunk))


def is_power_of_two(size: int) -> bool:
    return size & (size - 1) == 0


@pytest.mark.parametrize("size", ALL_SIZES)
@pytest.mark.parametrize("name", COLLECTIVES)
def test_bytes_equal_the_formula(name: str, size: int) -> None:
    simulated, cost = simulated_and_formula(name, size, WITHOUT_ADDING)
    assert simulated.bytes_sent == pytest.approx(cost.bytes_sent, rel=1e-12)
    assert simulated.bytes_sent_by_rank.max() == pytest.approx(cost.largest_bytes_sent, rel=1e-12)


def is_exact(name: str, size: int, network: Network) -> bool:
    """Else the formula is a bound, and tested as one below."""
    adds_on_a_tree = name in ADDING_ON_A_TREE and network.seconds_per_byte_reduced > 0
    return is_power_of_two(size) or not (name in FOLDING or adds_on_a_tree)


@pytest.mark.parametrize(
    ("name", "size", "network"),
    [
        pytest.param(name, size, network, id=f"{name}, {size} ranks, γ = {network.seconds_per_byte_reduced:g}")
        for name in COLLECTIVES
        for size in ALL_SIZES
        for network in (WITHOUT_ADDING, WITH_ADDING)
        if is_exact(name, size, network)
    ],
)
def test_time_equals_the_formula(name: str, size: int, network: Network) -> None:
    simulated, cost = simulated_and_formula(name, size, network)
    assert simulated.elapsed == pytest.approx(cost.seconds(ALPHA, BETA, network.seconds_per_byte_reduced), rel=1e-9)


@pytest.mark.parametrize("size", [size for size in ALL_SIZES if not is_power_of_two(size)])
@pytest.mark.parametrize("name", sorted(ADDING_ON_A_TREE))
def test_the_formula_of_an_incomplete_tree_is_an_upper_bound(name: str, size: int) -> None:
    simulated, cost = simulated_and_formula(name, size, WITH_ADDING)
    seconds = cost.seconds(ALPHA, BETA, GAMMA)
    assert cost.seconds(ALPHA, BETA) < simulated.elapsed < seconds


@pytest.mark.parametrize("network", [WITHOUT_ADDING, WITH_ADDING], ids=["γ = 0", "γ > 0"])
@pytest.mark.parametrize("size", [size for size in ALL_SIZES if not is_power_of_two(size)])
@pytest.mark.parametrize("name", sorted(FOLDING))
def test_the_formula_with_folding_is_a_lower_bound(name: str, size: int, network: Network) -> None:
    """What ranks send that need not wait holds up the ports of those that fold: by two more messages at most."""
    simulated, cost = simulated_and_formula(name, size, network)
    seconds = cost.seconds(ALPHA, BETA, network.seconds_per_byte_reduced)
    one_message = ALPHA + BETA * inputs_of(size, each_a_chunk=False)[0].nbytes
    assert seconds * (1 - 1e-9) <= simulated.elapsed <= (seconds + 2 * one_message) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("name", "size"),
    [(name, size) for name in COLLECTIVES for size in (3, 5, 8, 17) if is_exact(name, size, WITHOUT_ADDING)],
)
def test_uneven_chunks_cost_one_element_more_per_message_at_most(name: str, size: int) -> None:
    for elements in (1, size - 1, size + 1, 101):
        simulated, cost = simulated_and_formula(name, size, WITHOUT_ADDING, elements)
        seconds = cost.seconds(ALPHA, BETA)
        assert abs(simulated.elapsed - seconds) <= simulated.messages_by_rank.sum() * 8 * BETA + 1e-9 * seconds


def test_naive_is_a_lower_bound_where_adding_is_slower_than_receiving() -> None:
    slow_adding = Network(latency=ALPHA, seconds_per_byte=BETA, seconds_per_byte_reduced=2 * BETA)
    simulated, cost = simulated_and_formula("naive all-reduce", 8, slow_adding)
    assert simulated.elapsed > cost.seconds(ALPHA, BETA, 2 * BETA)


@pytest.mark.parametrize("size", ALL_SIZES)
def test_the_barrier_takes_its_steps(size: int) -> None:
    simulated = World(size, WITH_ADDING).run(collectives.barrier)
    assert simulated.elapsed == pytest.approx(costs.barrier(size).seconds(ALPHA, BETA), rel=1e-9)
    assert simulated.bytes_sent == 0


def test_one_message_costs_what_the_model_says() -> None:
    async def program(rank: object, array: np.ndarray) -> None:
        if rank.index == 0:
            await rank.send(1, array)
        else:
            await rank.receive(0)

    simulated = World(2, WITH_ADDING).run(program, [np.zeros(1000)] * 2)
    assert simulated.elapsed == pytest.approx(costs.message(8000).seconds(ALPHA, BETA), rel=1e-9)


@pytest.mark.parametrize(("size", "per_host"), [(8, 4), (8, 2), (12, 3), (12, 4), (16, 8), (6, 1), (5, 5), (1, 4)])
def test_hierarchical_equals_its_formula_on_full_hosts(size: int, per_host: int) -> None:
    inside, between = Link(2e-6, 1e-10), Link(2e-5, 3e-9)
    network = Network(between.latency, between.seconds_per_byte, GAMMA, per_host, inside_host=inside)
    array = np.arange(ELEMENTS * size, dtype=np.float64)

    async def program(rank: object, array: np.ndarray) -> np.ndarray:
        return await collectives.hierarchical_all_reduce(rank, array, per_host)

    simulated = World(size, network).run(program, [array] * size)
    # On the virtual cluster each rank has a port of its own, so that the host's connection is as many times as fast.
    whole_host = Link(between.latency, between.seconds_per_byte / min(size, per_host))
    expected = hierarchical(size, array.nbytes, per_host).seconds(inside, whole_host, GAMMA)
    assert simulated.elapsed == pytest.approx(expected, rel=1e-9)


def test_a_ring_that_waits_for_each_message_pays_the_slowest_link_in_every_step() -> None:
    """Unlike NCCL's, whose chunks are on several links at once: what `hierarchical.ring` counts."""
    inside, between = Link(2e-6, 1e-10), Link(2e-5, 3e-9)
    network = Network(between.latency, between.seconds_per_byte, 0.0, 4, inside_host=inside)
    array = np.arange(8 * ELEMENTS, dtype=np.float64)
    simulated = World(8, network).run(collectives.ring_all_reduce, [array] * 8)
    slowest = costs.all_reduce("ring", 8, array.nbytes).seconds(between.latency, between.seconds_per_byte)
    assert simulated.elapsed == pytest.approx(slowest, rel=1e-9)


def test_a_fit_to_simulated_times_gives_the_network_back() -> None:
    sizes = 8 * np.array([4, 40, 400, 4000, 40_000])
    seconds = [
        World(4, WITHOUT_ADDING).run(collectives.ring_all_reduce, [np.zeros(size // 8)] * 4).elapsed for size in sizes
    ]
    fitted = costs.fit(sizes, seconds, lambda n: costs.all_reduce("ring", 4, n))
    assert (fitted.latency, fitted.seconds_per_byte) == pytest.approx((ALPHA, BETA), rel=1e-9)
    assert np.abs(fitted.residuals).max() < 1e-9


class TestByHand:
    """n bytes on each rank, in chunks of equal size; the sources of the formulas are in the docstrings."""

    def run(self, program: Callable, size: int, network: Network = NETWORK, length: int | None = None) -> Run:
        length = 400 * size if length is None else length
        self.bytes = 8.0 * length
        return World(size, network).run(program, [np.zeros(length)] * size)

    def seconds(self, steps: float, sent: float, reduced: float, network: Network = NETWORK) -> float:
        """Steps in α; bytes sent and reduced in multiples of n."""
        return (
            steps * network.latency
            + sent * self.bytes * network.seconds_per_byte
            + reduced * self.bytes * network.seconds_per_byte_reduced
        )

    @pytest.mark.parametrize("size", SIZES)
    def test_ring(self, size: int) -> None:
        run = self.run(collectives.ring_all_reduce, size)
        share = (size - 1) / size
        assert run.elapsed == EXACTLY(self.seconds(2 * (size - 1), 2 * share, share))
        assert run.bytes_sent_by_rank.tolist() == [EXACTLY(2 * share * self.bytes)] * size
        assert run.messages_by_rank.tolist() == [2 * (size - 1)] * size

    def test_ring_sends_what_the_course_says(self) -> None:
        sent = {
            size: self.run(collectives.ring_all_reduce, size).bytes_sent_by_rank[0] / self.bytes for size in (2, 4, 8)
        }
        assert sent == {2: 1.0, 4: 1.5, 8: 1.75}

    @pytest.mark.parametrize("size", SIZES)
    def test_the_halves_of_the_ring(self, size: int) -> None:
        share = (size - 1) / size
        run = self.run(collectives.reduce_scatter, size)
        assert run.elapsed == EXACTLY(self.seconds(size - 1, share, share))
        assert run.bytes_sent == EXACTLY((size - 1) * self.bytes)
        run = self.run(collectives.all_gather, size)
        assert run.elapsed == EXACTLY(self.seconds(size - 1, size - 1, 0))
        run = self.run(collectives.all_to_all, size)
        assert run.elapsed == EXACTLY(self.seconds(size - 1, share, 0))
        assert run.bytes_sent == EXACTLY((size - 1) * self.bytes)

    @pytest.mark.parametrize("size", SIZES)
    def test_recursive_doubling(self, size: int) -> None:
        run = self.run(collectives.ALL_REDUCE["recursive_doubling"], size)
        doublings, is_power = floor(log2(size)), size == 2 ** floor(log2(size))
        beyond = 0 if is_power else 1
        assert run.elapsed == EXACTLY(self.seconds(doublings + 2 * beyond, doublings + 2 * beyond, doublings + beyond))
        assert run.messages_by_rank.max() == doublings + beyond

    @pytest.mark.parametrize("size", SIZES)
    def test_halving_doubling(self, size: int) -> None:
        run = self.run(collectives.ALL_REDUCE["halving_doubling"], size, length=64 * size)
        halvings = floor(log2(size))
        paired = 2**halvings
        beyond = 0 if size == paired else 1
        share = (paired - 1) / paired
        formula = self.seconds(2 * halvings + 2 * beyond, 2 * share + 2 * beyond, share + beyond)
        # Ranks without a guest are ahead of the others, and their messages can come in the way of more urgent ones.
        most = 1.0 if size == paired else 1.15
        assert formula * (1 - 1e-9) <= run.elapsed <= most * formula * (1 + 1e-9)
        assert run.bytes_sent == EXACTLY((2 * share * paired + 2 * (size - paired)) * self.bytes)

    @pytest.mark.parametrize("size", SIZES)
    def test_trees(self, size: int) -> None:
        depth = ceil(log2(size))
        is_power = size == 2**depth
        run = self.run(collectives.broadcast, size)
        assert run.elapsed == EXACTLY(self.seconds(depth, depth, 0))
        assert run.bytes_sent == (size - 1) * self.bytes
        run = self.run(collectives.reduce, size)
        most = self.seconds(depth, depth, depth)
        assert run.elapsed == EXACTLY(most) if is_power else run.elapsed <= most
        assert run.bytes_sent == (size - 1) * self.bytes
        run = self.run(collectives.reduce, size, Network(5e-6, 1e-9))
        assert run.elapsed == EXACTLY(self.seconds(depth, depth, 0))
        run = self.run(collectives.ALL_REDUCE["tree"], size)
        most = self.seconds(2 * depth, 2 * depth, depth)
        assert run.elapsed == EXACTLY(most) if is_power else run.elapsed <= most
        assert run.bytes_sent == 2 * (size - 1) * self.bytes

    @pytest.mark.parametrize("size", SIZES)
    def test_scatter_and_gather(self, size: int) -> None:
        depth, share = ceil(log2(size)), (size - 1) / size
        through_tree = sum(rank.bit_count() for rank in range(size))
        run = self.run(collectives.scatter, size)
        assert run.elapsed == EXACTLY(self.seconds(depth, share, 0))
        assert run.bytes_sent == EXACTLY(through_tree / size * self.bytes)
        run = self.run(collectives.gather, size)
        assert run.elapsed == EXACTLY(self.seconds(depth, size - 1, 0))
        assert run.bytes_sent == EXACTLY(through_tree * self.bytes)

    @pytest.mark.parametrize("size", SIZES)
    def test_naive(self, size: int) -> None:
        run = self.run(collectives.ALL_REDUCE["naive"], size)
        assert run.elapsed == EXACTLY(self.seconds(2 * (size - 1), 2 * (size - 1), 1 if size > 1 else 0))
        assert run.bytes_sent == 2 * (size - 1) * self.bytes
        assert run.messages == 2 * (size - 1)

    @pytest.mark.parametrize(("hosts", "per_host"), [(1, 4), (4, 1), (2, 3), (3, 4), (4, 4)])
    def test_hierarchical(self, hosts: int, per_host: int) -> None:
        inside = Link(1e-6, 0.1e-9)
        network = Network(5e-6, 1e-9, 0.3e-9, ranks_per_host=per_host, inside_host=inside)
        run = self.run(partial(collectives.hierarchical_all_reduce, ranks_per_host=per_host), hosts * per_host, network)
        within, between = (per_host - 1) / per_host, (hosts - 1) / hosts / per_host
        in_hosts = Network(inside.latency, inside.seconds_per_byte, network.seconds_per_byte_reduced)
        assert run.elapsed == EXACTLY(
            self.seconds(2 * (per_host - 1), 2 * within, within, in_hosts)
            + self.seconds(2 * (hosts - 1), 2 * between, between, network)
        )

    @pytest.mark.parametrize("size", [2, 3, 8, 17])
    def test_an_uneven_ring_waits_for_its_largest_chunk(self, size: int) -> None:
        run = self.run(collectives.ring_all_reduce, size, length=10 * size + 1)
        largest = 11 / (10 * size + 1)
        assert run.elapsed == EXACTLY(self.seconds(2 * (size - 1), 2 * (size - 1) * largest, (size - 1) * largest))

    def test_one_slow_link_holds_up_the_whole_ring(self) -> None:
        size, factor = 6, 10
        network = Network(latency=0, seconds_per_byte=1e-9).with_slow_link(2, 3, factor)
        run = self.run(collectives.ring_all_reduce, size, network)
        chunk_seconds = self.bytes / size * 1e-9
        # The slow link carries every step's chunk; a chunk that has passed it may have to go on over the others.
        assert run.elapsed >= 2 * (size - 1) * factor * chunk_seconds
        assert run.elapsed <= (2 * (size - 1) * factor + size) * chunk_seconds
