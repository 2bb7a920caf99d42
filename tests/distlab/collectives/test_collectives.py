"""Every collective against NumPy."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distlab.collectives import (
    ALL_REDUCE,
    GroupRank,
    all_gather,
    all_to_all,
    broadcast,
    chunks_of,
    gather,
    hierarchical_all_reduce,
    reduce,
    reduce_scatter,
    scatter,
)
from distlab.simulate import Link, Network, Rank, World

SIZES = range(1, 18)
ALL = ALL_REDUCE | {
    f"hierarchical, {each} per host": partial(hierarchical_all_reduce, ranks_per_host=each) for each in (1, 2, 3, 40)
}
DTYPES = (np.float32, np.float64, np.int32, np.int64, np.uint8)


def inputs_for(size: int, shape: tuple[int, ...] | int, dtype: type = np.float64, seed: int = 0) -> list[np.ndarray]:
    """One array per rank, all different, of whole numbers small enough for their sum to be exact in every dtype."""
    random = np.random.default_rng(seed)
    return [random.integers(0, 15, shape).astype(dtype) for _ in range(size)]


def total_of(inputs: list[np.ndarray]) -> np.ndarray:
    return np.add.reduce(inputs, dtype=inputs[0].dtype)


def same(result: np.ndarray | None, expected: np.ndarray | None) -> None:
    """Fail unless values, shape and dtype are equal, or both are None."""
    if expected is None:
        assert result is None
    else:
        np.testing.assert_array_equal(result, expected, strict=True)


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ALL)
def test_all_reduce_equals_numpy_for_every_size(algorithm: str) -> None:
    for size in SIZES:
        for length in sorted({0, 1, size - 1, size, size + 1, 3 * size + 2}):
            inputs = inputs_for(size, length, np.float32)
            for result in World(size).run(ALL[algorithm], inputs).results:
                same(result, total_of(inputs))


@pytest.mark.parametrize("algorithm", ALL)
def test_numbers_and_arrays_in_any_order_are_summed_and_every_rank_gets_the_same_bits(algorithm: str) -> None:
    columns_first = [np.asfortranarray(rank + np.arange(12.0).reshape(3, 4)) for rank in range(5)]
    for inputs in (list(np.arange(5.0)), [np.array(2.5)] * 5, columns_first):
        for result in World(5).run(ALL[algorithm], inputs).results:
            same(result, np.array(sum(inputs)))
    inputs = [np.random.default_rng(rank).normal(size=23).astype(np.float32) for rank in range(7)]
    results = World(7).run(ALL[algorithm], inputs).results
    assert len({result.tobytes() for result in results}) == 1
    np.testing.assert_allclose(results[0], np.sum(inputs, axis=0), rtol=1e-5, atol=1e-5)


networks = st.builds(
    Network, *[st.floats(0, 1e-3)] * 3, st.just(2), st.builds(Link, st.floats(0, 1e-4), st.floats(0, 1e-6))
) | st.builds(Network, *[st.floats(0, 1e-3)] * 3)
shapes = st.lists(st.integers(0, 5), max_size=3).map(tuple) | st.integers(0, 60)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(list(ALL)), st.integers(1, 17), shapes, st.sampled_from(DTYPES), networks, st.integers(0, 9))
def test_all_reduce_equals_numpy_on_any_network(
    algorithm: str, size: int, shape: tuple[int, ...], dtype: type, network: Network, seed: int
) -> None:
    inputs = inputs_for(size, shape, dtype, seed)
    run = World(size, network, compute_speeds={0: 0.5}).run(ALL[algorithm], inputs)
    for result in run.results:
        same(result, total_of(inputs))
    same(inputs[0], inputs_for(size, shape, dtype, seed)[0])


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.integers(1, 17), st.data())
def test_the_other_collectives_equal_numpy(size: int, data: st.DataObject) -> None:
    shape = (data.draw(st.integers(0, 40)), *data.draw(st.lists(st.integers(0, 3), max_size=2)))
    inputs = inputs_for(size, shape, data.draw(st.sampled_from(DTYPES)))
    world, others = World(size, data.draw(networks)), [None] * (size - 1)
    first_split, total_split = (np.array_split(array, size) for array in (inputs[0], total_of(inputs)))
    split = [np.array_split(array, size) for array in inputs]
    for collective, of_ranks, expected in (
        (broadcast, [inputs[0], *others], [inputs[0]] * size),
        (reduce, inputs, [total_of(inputs), *others]),
        (scatter, [inputs[0], *others], first_split),
        (gather, inputs, [np.concatenate(inputs), *others]),
        (all_gather, inputs, [np.concatenate(inputs)] * size),
        (reduce_scatter, inputs, total_split),
        (all_to_all, inputs, [np.concatenate(of_rank) for of_rank in zip(*split, strict=True)]),
    ):
        for result, of_numpy in zip(world.run(collective, of_ranks).results, expected, strict=True):
            same(result, of_numpy)


def test_gathers_take_rows_of_unequal_number_and_chunks_are_numpys() -> None:
    for size in SIZES:
        inputs = [np.full((rank % 3, 2), rank) for rank in range(size)]
        same(World(size).run(gather, inputs).results[0], np.concatenate(inputs))
        same(World(size).run(all_gather, inputs).results[-1], np.concatenate(inputs))
        for length in (0, 1, size, 2 * size + 1, 50):
            array = np.arange(length)
            for chunk, expected in zip(chunks_of(array, size), np.array_split(array, size), strict=True):
                same(chunk, expected)


def test_a_collective_runs_among_the_members_of_a_group_alone() -> None:
    async def program(rank: Rank, array: np.ndarray) -> np.ndarray:
        members = range(rank.index % 2, rank.size, 2)
        group = GroupRank(rank, members)
        assert group.now == rank.now
        return await all_gather(group, array)

    run = World(5).run(program, [np.array([rank]) for rank in range(5)])
    assert [result.tolist() for result in run.results] == [[0, 2, 4], [1, 3], [0, 2, 4], [1, 3], [0, 2, 4]]
