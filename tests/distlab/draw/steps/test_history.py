"""What the ranks hold after each step, compared with NumPy."""

import itertools

import numpy as np
import pytest

from distlab import collectives, draw
from distlab.collectives import ring_all_reduce
from tests.distlab.draw.programs import MOVING, ring_by_numpy


@pytest.mark.parametrize("size", [2, 5, 8])
def test_what_the_ranks_hold_is_what_numpy_computes(size: int) -> None:
    trace = draw.trace(ring_all_reduce, size, 2 * size)
    expected = ring_by_numpy(size)
    assert trace.last == len(expected) - 1 == 2 * (size - 1)
    for step, by_rank in enumerate(trace.holdings):
        for rank, holding in enumerate(by_rank):
            for position, element in enumerate(holding):
                assert element.ranks == np.flatnonzero(expected[step, rank, position // 2]).tolist()
                assert element.positions == {position}


def test_in_the_end_of_other_collectives_each_rank_holds_what_it_should() -> None:
    for name, size in itertools.product(MOVING, (1, 3, 8)):
        trace = draw.trace(getattr(collectives, name), size, 2 * size, name)
        for rank in range(size):
            for expected, element in zip(trace.task.ends[rank], trace.holdings[-1][rank], strict=True):
                assert expected is None or expected == element
        assert trace.first_fault() is None
