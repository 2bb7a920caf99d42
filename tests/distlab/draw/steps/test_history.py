"""What the ranks hold after each step, compared with NumPy; no port is used twice in a step."""

from collections import Counter

import numpy as np
import pytest

from distlab import collectives, draw
from distlab.collectives import ring_all_reduce
from tests.distlab.draw.programs import ALL_REDUCE, MOVING, ring_by_numpy


@pytest.mark.parametrize("size", range(2, 9))
def test_what_the_ranks_hold_is_what_numpy_computes(size: int) -> None:
    trace = draw.trace(ring_all_reduce, size, 2 * size)
    expected = ring_by_numpy(size)
    assert trace.last == len(expected) - 1 == 2 * (size - 1)
    for step, by_rank in enumerate(trace.holdings):
        for rank, holding in enumerate(by_rank):
            for position, element in enumerate(holding):
                assert element.ranks == np.flatnonzero(expected[step, rank, position // 2]).tolist()
                assert element.positions == {position}


@pytest.mark.parametrize("name", MOVING)
def test_in_the_end_of_other_collectives_each_rank_holds_what_it_should(name: str) -> None:
    for size in range(1, 9):
        trace = draw.trace(getattr(collectives, name), size, 2 * size, name)
        for rank in range(size):
            for expected, element in zip(trace.task.ends[rank], trace.holdings[-1][rank], strict=True):
                assert expected is None or expected == element
        assert trace.first_fault() is None


def test_an_all_to_all_fills_up_as_the_chunks_arrive() -> None:
    trace = draw.trace(collectives.all_to_all, 4, collective="all_to_all")
    wrong = [
        sum(
            element != expected
            for rank in range(4)
            for element, expected in zip(by_rank[rank], trace.task.ends[rank], strict=True)
        )
        for by_rank in trace.holdings
    ]
    assert wrong == [12, 8, 4, 0]


def test_no_rank_sends_or_receives_twice_in_a_step() -> None:
    for program in ALL_REDUCE.values():
        for size in (3, 5, 8):
            messages = draw.trace(program, size).messages
            assert max(Counter((message.step, message.to) for message in messages).values()) == 1
