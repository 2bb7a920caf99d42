"""The ring all-reduce: known-wrong versions of it, each of which is detected."""

from collections.abc import Callable
from typing import ClassVar

import numpy as np
import pytest

from distlab.collectives import (
    chunks_of,
    ring_all_reduce,
)
from distlab.simulate import (
    DeadlockError,
    MismatchError,
    Rank,
    UnreceivedMessageError,
    World,
    contributions,
)
from tests.distlab.collectives.collective_inputs import EXACTLY, SIZES, inputs_for, same, total_of


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


class TestKnownWrong:
    """A check that cannot fail proves nothing: each of these rings is wrong, and is detected."""

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
