"""A coroutine that a program never awaits is named; what it would have done is not taken for done."""

import warnings

import numpy as np
import pytest

from distlab import collectives
from distlab.simulate import DeadlockError, ProgramError, Rank, World
from distlab.simulate.world import Program

ARRAYS = [np.ones(4)] * 2


async def as_a_statement(rank: Rank, array: np.ndarray) -> np.ndarray | None:
    collectives.ring_all_reduce(rank, array)
    return array


async def kept_in_a_variable(rank: Rank, array: np.ndarray) -> np.ndarray | None:
    total = collectives.ring_all_reduce(rank, array)
    return array if total else None


async def on_one_rank(rank: Rank, array: np.ndarray) -> np.ndarray | None:
    if rank.index == 0:
        collectives.ring_all_reduce(rank, array)
    else:
        await collectives.ring_all_reduce(rank, array)
    return array


@pytest.mark.parametrize("program", [as_a_statement, kept_in_a_variable, on_one_rank])
def test_a_collective_that_is_not_awaited_is_named(program: Program) -> None:
    sentence = r"^ring_all_reduce\(…\) is called without awaiting it: write `await ring_all_reduce\(…\)`$"
    with warnings.catch_warnings(), pytest.raises(ProgramError, match=sentence) as raised:
        warnings.simplefilter("error")
        World(2).run(program, ARRAYS)
    assert raised.value.events is not None
    assert isinstance(raised.value.__cause__, DeadlockError) == (program is on_one_rank)


def test_a_received_array_that_is_used_before_it_is_awaited_is_named() -> None:
    async def adds(rank: Rank, array: np.ndarray) -> np.ndarray | None:
        if rank.index == 0:
            await rank.send(1, array)
            return None
        return rank.receive(0) + array

    with pytest.raises(ProgramError, match=r"^rank 1 calls rank.receive\(…\) without awaiting it"):
        World(2).run(adds, ARRAYS)


def test_other_warnings_pass() -> None:
    async def warns(rank: Rank) -> np.float64:
        warnings.warn("the rank says so", UserWarning, stacklevel=1)
        return np.float64(1.0) / np.float64(0.0)

    with pytest.warns() as caught:
        World(1).run(warns)
    assert [warning.category for warning in caught] == [UserWarning, RuntimeWarning]
