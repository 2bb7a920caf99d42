"""The boxes of a rank: finished chunks at the end."""

import itertools
from collections import Counter

import pytest

from distlab import draw
from distlab.draw.steps.chunk_boxes import Boxes
from tests.distlab.draw.programs import ALL_REDUCE


@pytest.mark.slow
def test_in_the_end_of_an_all_reduce_every_chunk_is_finished() -> None:
    for program, (size, length) in itertools.product(ALL_REDUCE.values(), ((2, 2), (3, 7), (8, 17))):
        trace = draw.trace(program, size, length)
        assert trace.is_over and trace.first_fault() is None
        stamps = [stamp.shape.name for rank in range(size) for stamp in Boxes(trace).of_rank(trace.last, rank, 0, 0)]
        counts = Counter(stamps)
        assert counts["finished chunk"] == size * len(trace.boxes)
        assert all(counts[f"share {owner}"] == size * len(trace.boxes) for owner in range(size))
