"""The boxes of a rank: finished chunks at the end, and names where chunks change places."""

from collections import Counter

import pytest

from distlab import collectives, draw
from distlab.draw.steps.chunk_boxes import Boxes
from tests.distlab.draw.programs import ALL_REDUCE


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL_REDUCE)
def test_in_the_end_of_an_all_reduce_every_chunk_is_finished(name: str) -> None:
    for size, length in ((2, 2), (3, 7), (5, 4), (8, 17)):
        trace = draw.trace(ALL_REDUCE[name], size, length)
        assert trace.is_over and trace.first_fault() is None
        stamps = [stamp.shape.name for rank in range(size) for stamp in Boxes(trace).of_rank(trace.last, rank, 0, 0)]
        counts = Counter(stamps)
        assert counts["finished chunk"] == size * len(trace.boxes)
        assert all(counts[f"share {owner}"] == size * len(trace.boxes) for owner in range(size))


def test_a_chunk_whose_place_is_overwritten_is_named_when_it_is_sent() -> None:
    trace = draw.trace(collectives.all_to_all, 4, collective="all_to_all")
    labels = [
        stamp.shape.name
        for step in range(trace.last)
        for rank in range(4)
        for stamp in Boxes(trace).marks(step, rank, 0, 0)
        if stamp.shape.name.startswith("text")
    ]
    # In the last step every rank sends the chunk on whose place it put what came in the first.
    assert sorted(labels) == ["text 0.3", "text 1.0", "text 2.1", "text 3.2"]
