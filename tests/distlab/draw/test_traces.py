"""A trace is drawn as the program ran: a fault is marked where it came in, and the strip ends where the run did."""

import numpy as np
import pytest
from matplotlib.patches import FancyArrowPatch

from distlab import draw
from distlab.collectives import chunks_of, ring_all_reduce
from distlab.simulate import DeadlockError, Rank
from tests.distlab.draw.programs import drawn, ring


def test_a_share_of_another_chunk_is_marked_where_it_came_in_first() -> None:
    trace = draw.trace(ring(off_by_one=True), 4)
    first = drawn(trace.strip([0, 1]))
    assert first["wrong chunk"] == 4
    assert [first[f"strange share {owner}"] for owner in range(4)] == [1, 1, 1, 1]
    assert drawn(trace.strip([0]))["wrong chunk"] == 0
    assert "After step 1 chunk 0 of rank 0 has chunk 3 of rank 3 in it." in trace.describe()


def test_a_share_added_twice_is_marked_from_that_step_on_wherever_it_goes() -> None:
    trace = draw.trace(ring(twice_on=1), 4)
    marked = []
    for step in range(7):
        counts = drawn(trace.strip([step]))
        assert counts["share 0 twice"] == counts["share 3 twice"] == counts["wrong chunk"]
        marked.append(counts["wrong chunk"])
    assert marked[:2] == [0, 0]
    assert marked[2] == 1
    assert marked[-1] == 4
    assert "After step 2 chunk 3 of rank 1 has rank 0's share twice and rank 3's share twice." in trace.describe()


def test_a_chunk_that_should_not_be_returned_is_marked() -> None:
    async def program(rank: Rank, array: np.ndarray) -> np.ndarray:
        return chunks_of(await ring_all_reduce(rank, array), rank.size)[rank.index - 1]

    trace = draw.trace(program, 4, collective="reduce_scatter")
    assert drawn(trace.strip([trace.last - 1]))["wrong chunk"] == 0
    assert drawn(trace.strip([trace.last]))["wrong chunk"] == 4
    assert "In the end chunk 3 of rank 0 is returned, but chunk 0 is needed." in trace.describe()


def test_a_deadlock_is_drawn_up_to_where_it_stopped() -> None:
    trace = draw.trace(ring(leaves=2), 4)
    assert isinstance(trace.error, DeadlockError)
    figure = trace.strip()
    counts = drawn(figure)
    sent = len(trace.events.select("send"))
    received = len(trace.events.select("receive"))
    assert sent > received
    assert sum(isinstance(patch, FancyArrowPatch) for patch in figure.axes[0].patches) == sent
    assert counts["lost message"] == sent - received
    assert {"text waits for rank 0", "text waits for rank 2", "text waits for rank 3"} <= set(counts)
    assert counts["wrong chunk"] == 0  # what is not finished may still come
    assert "Then it stopped: deadlock: rank 0 has waited" in trace.describe()


def test_what_cannot_be_drawn_is_refused_with_what_can() -> None:
    with pytest.raises(ValueError, match="300 ranks are too many to draw, at most 16"):
        draw.trace(ring_all_reduce, 300)
