"""Every collective against NumPy, and its time, steps and bytes against the formulas."""

from collections.abc import Callable
from functools import partial
from math import ceil, floor, log2
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distlab.collectives import (
    ALL_REDUCE,
    GroupRank,
    all_gather,
    all_to_all,
    barrier,
    broadcast,
    chunks_of,
    gather,
    hierarchical_all_reduce,
    parameter_server,
    reduce,
    reduce_scatter,
    ring_all_reduce,
    scatter,
)
from distlab.simulate import (
    DeadlockError,
    Link,
    MismatchError,
    Network,
    NoSuchRankError,
    Rank,
    Run,
    UnreceivedMessageError,
    World,
    contributions,
)

SIZES = range(1, 18)
ALL_SIX = {**ALL_REDUCE, "hierarchical": partial(hierarchical_all_reduce, ranks_per_host=3)}
DTYPES = (np.float32, np.float64, np.int32, np.int64, np.uint8)
# Each of α, β and γ matters, and none hides behind another.
NETWORK = Network(latency=5e-6, seconds_per_byte=1e-9, seconds_per_byte_reduced=0.3e-9)
EXACTLY = partial(pytest.approx, rel=1e-9, abs=0)


def inputs_for(size: int, shape: tuple[int, ...] | int, dtype: type = np.float64, seed: int = 0) -> list[np.ndarray]:
    """One array per rank, all different, of whole numbers small enough for their sum to be exact in every dtype."""
    random = np.random.default_rng(seed)
    return [random.integers(0, 15, shape).astype(dtype) for _ in range(size)]


def total_of(inputs: list[np.ndarray]) -> np.ndarray:
    return np.add.reduce(inputs, dtype=inputs[0].dtype)


def same(one: np.ndarray, other: np.ndarray) -> None:
    assert one.dtype == other.dtype
    np.testing.assert_array_equal(one, other, strict=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize("algorithm", ALL_SIX)
def test_all_reduce_equals_numpy_for_every_size(algorithm: str, dtype: type) -> None:
    for size in SIZES:
        for length in sorted({0, 1, size - 1, size, size + 1, 3 * size + 2}):
            inputs = inputs_for(size, length, dtype)
            for result in World(size).run(ALL_SIX[algorithm], inputs).results:
                same(result, total_of(inputs))


networks = st.builds(
    Network, *[st.floats(0, 1e-3)] * 3, st.just(2), st.builds(Link, st.floats(0, 1e-4), st.floats(0, 1e-6))
) | st.builds(Network, *[st.floats(0, 1e-3)] * 3)
shapes = st.lists(st.integers(0, 5), max_size=3).map(tuple) | st.integers(0, 60)


@settings(max_examples=80, deadline=None)
@given(st.sampled_from(list(ALL_SIX)), st.integers(1, 17), shapes, st.sampled_from(DTYPES), networks, st.integers(0, 9))
def test_all_reduce_equals_numpy_on_any_network(
    algorithm: str, size: int, shape: tuple[int, ...], dtype: type, network: Network, seed: int
) -> None:
    inputs = inputs_for(size, shape, dtype, seed)
    run = World(size, network, compute_speeds={0: 0.5}).run(ALL_SIX[algorithm], inputs)
    for result in run.results:
        same(result, total_of(inputs))
    same(inputs[0], inputs_for(size, shape, dtype, seed)[0])


@pytest.mark.parametrize("algorithm", ALL_SIX)
def test_every_rank_gets_the_same_bits(algorithm: str) -> None:
    inputs = [np.random.default_rng(rank).normal(size=23).astype(np.float32) for rank in range(7)]
    results = World(7).run(ALL_SIX[algorithm], inputs).results
    assert len({result.tobytes() for result in results}) == 1
    np.testing.assert_allclose(results[0], np.sum(inputs, axis=0), rtol=1e-5, atol=1e-5)


@settings(max_examples=80, deadline=None)
@given(st.integers(1, 17), st.data())
def test_the_other_collectives_equal_numpy(size: int, data: st.DataObject) -> None:
    root = data.draw(st.integers(0, size - 1))
    shape = (data.draw(st.integers(0, 40)), *data.draw(st.lists(st.integers(0, 3), max_size=2)))
    inputs = inputs_for(size, shape, data.draw(st.sampled_from(DTYPES)))
    world = World(size, data.draw(networks))
    on_root_only = [array if rank == root else None for rank, array in enumerate(inputs)]

    for result in world.run(partial(broadcast, root=root), on_root_only).results:
        same(result, inputs[root])

    results = world.run(partial(reduce, root=root), inputs).results
    same(results[root], total_of(inputs))
    assert [rank for rank, result in enumerate(results) if result is not None] == [root]

    for result, chunk in zip(
        world.run(partial(scatter, root=root), on_root_only).results, np.array_split(inputs[root], size), strict=True
    ):
        same(result, chunk)

    results = world.run(partial(gather, root=root), inputs).results
    same(results[root], np.concatenate(inputs))
    assert [rank for rank, result in enumerate(results) if result is not None] == [root]

    for result in world.run(all_gather, inputs).results:
        same(result, np.concatenate(inputs))

    for result, chunk in zip(
        world.run(reduce_scatter, inputs).results, np.array_split(total_of(inputs), size), strict=True
    ):
        same(result, chunk)

    for rank, result in enumerate(world.run(all_to_all, inputs).results):
        same(result, np.concatenate([np.array_split(array, size)[rank] for array in inputs]))


@pytest.mark.parametrize("size", SIZES)
def test_gathers_take_rows_of_unequal_number(size: int) -> None:
    inputs = [np.full((rank % 3, 2), rank) for rank in range(size)]
    same(World(size).run(gather, inputs).results[0], np.concatenate(inputs))
    for result in World(size).run(all_gather, inputs).results:
        same(result, np.concatenate(inputs))


def test_a_root_that_is_no_rank_is_refused() -> None:
    with pytest.raises(Exception, match="root is 4, but the ranks are 0 to 3"):
        World(4).run(partial(broadcast, root=4), inputs_for(4, 1))


@pytest.mark.parametrize("size", SIZES)
def test_chunks_are_numpys(size: int) -> None:
    for length in (0, 1, size, 2 * size + 1, 50):
        array = np.arange(length)
        for chunk, expected in zip(chunks_of(array, size), np.array_split(array, size), strict=True):
            same(chunk, expected)
            assert chunk.base is array or length == 0


@pytest.mark.parametrize("size", SIZES)
def test_nobody_leaves_a_barrier_before_the_last_has_come(size: int) -> None:
    async def program(rank: Rank) -> float:
        await rank.compute(1.0 if rank.index == size // 2 else 0.0)
        await barrier(rank)
        return rank.now

    assert min(World(size, NETWORK).run(program).results) >= 1.0
    run = World(size, NETWORK).run(barrier)
    assert run.elapsed == EXACTLY(ceil(log2(size)) * NETWORK.latency)
    assert run.bytes_sent == 0
    assert run.messages == size * ceil(log2(size))


class TestFormulas:
    """n bytes on each rank, in chunks of equal size; the sources of the formulas stand in the docstrings."""

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
        run = self.run(ring_all_reduce, size)
        share = (size - 1) / size
        assert run.elapsed == EXACTLY(self.seconds(2 * (size - 1), 2 * share, share))
        assert run.bytes_sent_by_rank.tolist() == [EXACTLY(2 * share * self.bytes)] * size
        assert run.messages_by_rank.tolist() == [2 * (size - 1)] * size

    def test_ring_sends_what_the_course_says(self) -> None:
        sent = {size: self.run(ring_all_reduce, size).bytes_sent_by_rank[0] / self.bytes for size in (2, 4, 8)}
        assert sent == {2: 1.0, 4: 1.5, 8: 1.75}

    @pytest.mark.parametrize("size", SIZES)
    def test_the_halves_of_the_ring(self, size: int) -> None:
        share = (size - 1) / size
        run = self.run(reduce_scatter, size)
        assert run.elapsed == EXACTLY(self.seconds(size - 1, share, share))
        assert run.bytes_sent == EXACTLY((size - 1) * self.bytes)
        run = self.run(all_gather, size)
        assert run.elapsed == EXACTLY(self.seconds(size - 1, size - 1, 0))
        run = self.run(all_to_all, size)
        assert run.elapsed == EXACTLY(self.seconds(size - 1, share, 0))
        assert run.bytes_sent == EXACTLY((size - 1) * self.bytes)

    @pytest.mark.parametrize("size", SIZES)
    def test_recursive_doubling(self, size: int) -> None:
        run = self.run(ALL_REDUCE["recursive_doubling"], size)
        doublings, is_power = floor(log2(size)), size == 2 ** floor(log2(size))
        beyond = 0 if is_power else 1
        assert run.elapsed == EXACTLY(self.seconds(doublings + 2 * beyond, doublings + 2 * beyond, doublings + beyond))
        assert run.messages_by_rank.max() == doublings + beyond

    @pytest.mark.parametrize("size", SIZES)
    def test_halving_doubling(self, size: int) -> None:
        run = self.run(ALL_REDUCE["halving_doubling"], size, length=64 * size)
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
        run = self.run(broadcast, size)
        assert run.elapsed == EXACTLY(self.seconds(depth, depth, 0))
        assert run.bytes_sent == (size - 1) * self.bytes
        run = self.run(reduce, size)
        most = self.seconds(depth, depth, depth)
        assert run.elapsed == EXACTLY(most) if is_power else run.elapsed <= most
        assert run.bytes_sent == (size - 1) * self.bytes
        run = self.run(reduce, size, Network(5e-6, 1e-9))
        assert run.elapsed == EXACTLY(self.seconds(depth, depth, 0))
        run = self.run(ALL_REDUCE["tree"], size)
        most = self.seconds(2 * depth, 2 * depth, depth)
        assert run.elapsed == EXACTLY(most) if is_power else run.elapsed <= most
        assert run.bytes_sent == 2 * (size - 1) * self.bytes

    @pytest.mark.parametrize("size", SIZES)
    def test_scatter_and_gather(self, size: int) -> None:
        depth, share = ceil(log2(size)), (size - 1) / size
        through_tree = sum(rank.bit_count() for rank in range(size))
        run = self.run(scatter, size)
        assert run.elapsed == EXACTLY(self.seconds(depth, share, 0))
        assert run.bytes_sent == EXACTLY(through_tree / size * self.bytes)
        run = self.run(gather, size)
        assert run.elapsed == EXACTLY(self.seconds(depth, size - 1, 0))
        assert run.bytes_sent == EXACTLY(through_tree * self.bytes)

    @pytest.mark.parametrize("size", SIZES)
    def test_naive(self, size: int) -> None:
        run = self.run(ALL_REDUCE["naive"], size)
        assert run.elapsed == EXACTLY(self.seconds(2 * (size - 1), 2 * (size - 1), 1 if size > 1 else 0))
        assert run.bytes_sent == 2 * (size - 1) * self.bytes
        assert run.messages == 2 * (size - 1)

    @pytest.mark.parametrize(("hosts", "per_host"), [(1, 4), (4, 1), (2, 3), (3, 4), (4, 4)])
    def test_hierarchical(self, hosts: int, per_host: int) -> None:
        inside = Link(1e-6, 0.1e-9)
        network = Network(5e-6, 1e-9, 0.3e-9, ranks_per_host=per_host, inside_host=inside)
        run = self.run(partial(hierarchical_all_reduce, ranks_per_host=per_host), hosts * per_host, network)
        within, between = (per_host - 1) / per_host, (hosts - 1) / hosts / per_host
        in_hosts = Network(inside.latency, inside.seconds_per_byte, network.seconds_per_byte_reduced)
        assert run.elapsed == EXACTLY(
            self.seconds(2 * (per_host - 1), 2 * within, within, in_hosts)
            + self.seconds(2 * (hosts - 1), 2 * between, between, network)
        )

    @pytest.mark.parametrize("size", [2, 3, 8, 17])
    def test_an_uneven_ring_waits_for_its_largest_chunk(self, size: int) -> None:
        run = self.run(ring_all_reduce, size, length=10 * size + 1)
        largest = 11 / (10 * size + 1)
        assert run.elapsed == EXACTLY(self.seconds(2 * (size - 1), 2 * (size - 1) * largest, (size - 1) * largest))

    def test_one_slow_link_holds_up_the_whole_ring(self) -> None:
        size, factor = 6, 10
        network = Network(latency=0, seconds_per_byte=1e-9).with_slow_link(2, 3, factor)
        run = self.run(ring_all_reduce, size, network)
        chunk_seconds = self.bytes / size * 1e-9
        # The slow link carries every step's chunk; a chunk that has passed it may have to go on over the others.
        assert run.elapsed >= 2 * (size - 1) * factor * chunk_seconds
        assert run.elapsed <= (2 * (size - 1) * factor + size) * chunk_seconds


class TestHierarchical:
    @pytest.mark.parametrize("per_host", [1, 2, 3, 5, 8, 40])
    def test_any_size_with_any_number_of_ranks_per_host(self, per_host: int) -> None:
        for size in SIZES:
            inputs = inputs_for(size, 2 * size + 3)
            for result in World(size).run(partial(hierarchical_all_reduce, ranks_per_host=per_host), inputs).results:
                same(result, total_of(inputs))

    def test_a_host_without_ranks_is_refused(self) -> None:
        with pytest.raises(Exception, match="ranks_per_host is 0"):
            World(2).run(partial(hierarchical_all_reduce, ranks_per_host=0), inputs_for(2, 1))


class TestGroups:
    def test_a_collective_runs_among_the_members_alone(self) -> None:
        async def program(rank: Rank, array: np.ndarray) -> np.ndarray:
            members = range(rank.index % 2, rank.size, 2)
            group = GroupRank(rank, members)
            await barrier(group)
            assert group.now == rank.now
            return await all_gather(group, array)

        run = World(5).run(program, [np.array([rank]) for rank in range(5)])
        assert [result.tolist() for result in run.results] == [[0, 2, 4], [1, 3], [0, 2, 4], [1, 3], [0, 2, 4]]

    def test_a_number_outside_the_group_is_refused(self) -> None:
        async def program(rank: Rank) -> None:
            await GroupRank(rank, [0, 1]).send(-1, np.zeros(1))

        with pytest.raises(NoSuchRankError, match="rank 0 sends to rank -1, but the ranks are 0 to 1"):
            World(2).run(program)


class TestParameterServer:
    @staticmethod
    def towards_zero(weights: np.ndarray, worker: int, step: int) -> np.ndarray:
        return weights

    def train(self, size: int, steps: int = 6, **options: object) -> Run:
        program = partial(parameter_server, gradient=self.towards_zero, steps=steps, learning_rate=0.1)
        return World(size, Network(), **options).run(program, [np.ones(3)] * size)

    def test_one_worker_is_never_stale_and_equals_serial_descent(self) -> None:
        training = self.train(2).results[0]
        assert training.staleness == [0] * 6
        np.testing.assert_allclose(training.weights, 0.9**6)

    @pytest.mark.parametrize("size", [3, 5, 9])
    def test_equal_workers_are_as_stale_as_there_are_others(self, size: int) -> None:
        training = self.train(size).results[0]
        workers = size - 1
        assert training.staleness == [*range(workers), *[workers - 1] * (5 * workers)]
        assert [update.worker for update in training.updates] == [*range(1, size)] * 6

    def test_a_straggler_is_staler_than_the_others(self) -> None:
        training = self.train(4, compute_speeds={3: 0.25}).results[0]
        by_worker = {w: [u.staleness for u in training.updates if u.worker == w] for w in (1, 2, 3)}
        assert by_worker[3][0] == 6
        assert max(by_worker[1]) <= 2
        assert sorted(map(len, by_worker.values())) == [6, 6, 6]
        times = [update.time for update in training.updates]
        assert times == sorted(times)

    def test_staleness_is_what_the_weights_lacked(self) -> None:
        seen = {}

        def gradient(weights: np.ndarray, worker: int, step: int) -> np.ndarray:
            seen[worker, step] = -10 * weights[0]
            return np.full(1, -10.0)

        # With a rate of 0.1 every update adds 1, so the weights count the updates.
        program = partial(parameter_server, gradient=gradient, steps=4)
        training = World(4, compute_speeds={2: 0.4}).run(program, [np.zeros(1)] * 4).results[0]
        steps_done = dict.fromkeys((1, 2, 3), 0)
        for applied, update in enumerate(training.updates):
            weights_had = -seen[update.worker, steps_done[update.worker]] / 10
            assert applied - weights_had == pytest.approx(update.staleness)
            steps_done[update.worker] += 1

    def test_without_workers_or_steps_nothing_happens(self) -> None:
        assert self.train(1).results[0].updates == []
        assert self.train(3, steps=0).results[0].updates == []


def ring_with(
    steps: int = 0, reduced: int = -1, gathered: int = 1, right: int = 1, adds_again: bool = False
) -> Callable:
    """The ring all-reduce with a fault planted: the defaults are right."""

    async def program(rank: Rank, array: np.ndarray) -> np.ndarray:
        total = array.copy()
        chunks = chunks_of(total, rank.size)
        to, source = (rank.index + right) % rank.size, (rank.index - 1) % rank.size
        for step in range(rank.size - 1 + steps):
            received = await rank.exchange(to, chunks[(rank.index - step) % rank.size], source)
            await rank.reduce(chunks[(rank.index - step + reduced) % rank.size], received)
        for step in range(rank.size - 1):
            received = await rank.exchange(to, chunks[(rank.index - step + gathered) % rank.size], source)
            if adds_again:
                await rank.reduce(chunks[(rank.index - step) % rank.size], received)
            else:
                chunks[(rank.index - step) % rank.size][:] = received
        return total

    return program


class TestPlantedFaults:
    """A check that cannot fail proves nothing: each of these rings is wrong, and is found out."""

    FAULTS: ClassVar = {
        "one step too few": {"steps": -1},
        "adds into the chunk it sends": {"reduced": 0},
        "passes on the wrong chunk": {"gathered": 0},
        "adds instead of replacing": {"adds_again": True},
    }

    def test_the_ring_without_a_fault_is_right(self) -> None:
        for size in SIZES:
            inputs = inputs_for(size, 2 * size)
            for result in World(size).run(ring_with(), inputs).results:
                same(result, total_of(inputs))

    @pytest.mark.parametrize("fault", FAULTS)
    @pytest.mark.parametrize("size", [3, 4, 7])
    def test_a_wrong_sum_shows_in_numbers_and_in_contributions(self, fault: str, size: int) -> None:
        program = ring_with(**self.FAULTS[fault])
        inputs = inputs_for(size, 2 * size, seed=1)
        results = World(size).run(program, inputs).results
        assert any((result != total_of(inputs)).any() for result in results)

        run = World(size).run(program, [contributions(rank, size) for rank in range(size)], keep_contents=True)
        everybody = list(range(size))
        assert any(element.ranks != everybody for result in run.results for element in result)

    @pytest.mark.parametrize("size", [3, 4, 7])
    def test_a_step_too_many_gives_the_right_sum_but_not_the_right_cost(self, size: int) -> None:
        inputs = inputs_for(size, 2 * size, seed=1)
        run, wasteful = (World(size).run(ring_with(steps=steps), inputs) for steps in (0, 1))
        for result in wasteful.results:
            same(result, total_of(inputs))
        assert wasteful.messages == run.messages + size
        assert wasteful.elapsed == EXACTLY(run.elapsed * (2 * size - 1) / (2 * size - 2))

    def test_sending_to_the_wrong_neighbour_ends_in_a_deadlock_that_names_all(self) -> None:
        with pytest.raises(DeadlockError) as failure:
            World(4).run(ring_with(right=2), inputs_for(4, 4))
        assert sorted(failure.value.waiting) == [0, 1, 2, 3]
        assert failure.value.unreceived == {(0, 2): 1, (1, 3): 1, (2, 0): 1, (3, 1): 1}

    def test_chunks_that_do_not_fit_are_found_at_the_first_sum(self) -> None:
        with pytest.raises(MismatchError, match=r"cannot add float64 of shape \(2,\) to float64 of shape \(3,\)"):
            World(3).run(ring_with(reduced=-2), inputs_for(3, 8))

    def test_a_message_too_many_is_found(self) -> None:
        async def program(rank: Rank, array: np.ndarray) -> np.ndarray:
            total = await ring_all_reduce(rank, array)
            await rank.send((rank.index + 1) % rank.size, total)
            return total

        with pytest.raises(UnreceivedMessageError, match="1 message from rank 2 to rank 0"):
            World(3).run(program, inputs_for(3, 3))


def test_a_right_ring_adds_every_rank_once_and_the_events_show_how() -> None:
    size = 4
    run = World(size).run(ring_all_reduce, [contributions(rank, size) for rank in range(size)], keep_contents=True)
    for result in run.results:
        assert [element.ranks for element in result] == [list(range(size))] * size
    for rank in range(size):
        sums = [event.content[0].ranks for event in run.events.select("reduce", rank=rank)]
        assert [len(ranks) for ranks in sums] == [2, 3, 4]
        held = [event.buffer for event in run.events.select("send", rank=rank)]
        assert [max(len(element.ranks) for element in buffer) for buffer in held] == [1, 2, 3, 4, 4, 4]
        positions = [event.position for event in run.events.select("send", rank=rank)]
        assert positions == [(rank - step) % size for step in (0, 1, 2, -1, 0, 1)]
