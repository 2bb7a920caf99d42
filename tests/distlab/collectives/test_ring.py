"""The ring all-reduce: known-wrong versions of it, each of which is detected."""

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from distlab.collectives import (
    chunks_of,
    ring_all_reduce,
)
from distlab.simulate import (
    Contributions,
    DeadlockError,
    MismatchError,
    Rank,
    World,
)
from tests.distlab.collectives.collective_inputs import EXACTLY, inputs_for, same, total_of


def contributions(rank: int, length: int) -> np.ndarray:
    """The input of a rank that says what it is."""
    return np.array([Contributions(Counter([(rank, position)])) for position in range(length)], object)


def ring_with(
    steps: int = 0, reduced: int = -1, gathered: int = 1, right: int = 1, adds_again: bool = False
) -> Callable:
    """The ring all-reduce, wrong in one place unless every argument has its default."""

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


FAULTS = {
    "one step too few": {"steps": -1},
    "adds into the chunk it sends": {"reduced": 0},
    "passes on the wrong chunk": {"gathered": 0},
    "adds instead of replacing": {"adds_again": True},
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_wrong_sum_shows_in_numbers_and_in_contributions(fault: str) -> None:
    for size in (3, 4, 7):
        inputs = inputs_for(size, 2 * size, seed=1)
        for result in World(size).run(ring_with(), inputs).results:
            same(result, total_of(inputs))
        results = World(size).run(ring_with(**FAULTS[fault]), inputs).results
        assert any((result != total_of(inputs)).any() for result in results)
        run = World(size).run(ring_with(**FAULTS[fault]), [contributions(rank, size) for rank in range(size)])
        assert any(element.ranks != list(range(size)) for result in run.results for element in result)


def test_a_step_too_many_gives_the_right_sum_but_not_the_right_cost() -> None:
    size, inputs = 4, inputs_for(4, 8, seed=1)
    run, wasteful = (World(size).run(ring_with(steps=steps), inputs) for steps in (0, 1))
    same(wasteful.results[0], total_of(inputs))
    assert wasteful.messages == run.messages + size
    assert wasteful.elapsed == EXACTLY(run.elapsed * (2 * size - 1) / (2 * size - 2))


def test_sending_to_the_wrong_neighbour_ends_in_a_deadlock_that_names_all() -> None:
    with pytest.raises(DeadlockError) as failure:
        World(4).run(ring_with(right=2), inputs_for(4, 4))
    assert sorted(failure.value.waiting) == [0, 1, 2, 3]
    assert failure.value.unreceived == {(0, 2): 1, (1, 3): 1, (2, 0): 1, (3, 1): 1}


def test_chunks_that_do_not_fit_are_found_at_the_first_sum() -> None:
    with pytest.raises(MismatchError, match=r"cannot add float64 of shape \(2,\) to float64 of shape \(3,\)"):
        World(3).run(ring_with(reduced=-2), inputs_for(3, 8))


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
