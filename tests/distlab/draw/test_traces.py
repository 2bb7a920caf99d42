"""A trace is drawn as the program ran: a fault is marked where it came in, and the strip ends where the run did."""

import numpy as np
import pytest
from matplotlib.patches import FancyArrowPatch

from distlab import draw
from distlab.collectives import ring_all_reduce
from distlab.simulate import DeadlockError, Rank, SimulationError, World, contributions
from tests.distlab.draw.known_wrong import ring, sends_and_leaves
from tests.distlab.draw.shapes import drawn


def test_a_share_of_another_chunk_is_marked_where_it_came_in_first() -> None:
    trace = draw.trace(ring(off_by_one=True), 4)
    first = drawn(trace.strip([0, 1]))
    assert first["wrong chunk"] == 4
    assert [first[f"strange share {owner}"] for owner in range(4)] == [1, 1, 1, 1]
    assert drawn(trace.strip([0]))["wrong chunk"] == 0
    assert "After step 1 chunk 0 of rank 0 has chunk 3 of rank 3 in it." in trace.describe()


def test_a_missing_last_step_leaves_marked_gaps() -> None:
    trace = draw.trace(ring(steps_left_out=1), 4)
    end = drawn(trace.strip([5]))
    assert (end["finished chunk"], end["wrong chunk"]) == (12, 4)
    missing = sum(end[f"missing share {owner}"] for owner in range(4))
    assert missing == 16 * 4 - sum(end[f"share {owner}"] for owner in range(4)) > 0
    assert drawn(trace.strip([4]))["wrong chunk"] == 0
    assert "In the end chunk" in trace.describe()


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


def test_a_fault_is_marked_by_more_than_colour() -> None:
    counts = drawn(draw.trace(ring(twice_on=1), 4).strip([2]))
    assert counts["text 2×"] >= 2
    assert counts["text !"] == 1


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


def test_a_run_that_stops_at_once_and_one_without_messages_can_be_drawn() -> None:
    async def only_waits(rank: Rank, array: np.ndarray) -> None:
        await rank.receive((rank.index + 1) % rank.size)

    assert drawn(draw.trace(only_waits, 2).strip())["text start"] == 1
    assert drawn(draw.trace(ring_all_reduce, 1).strip())["finished chunk"] == 1


@pytest.mark.slow
def test_an_error_its_events_and_a_run_are_drawn_like_a_trace() -> None:
    with pytest.raises(SimulationError) as caught:
        World(3).run(sends_and_leaves, [contributions(rank, 3) for rank in range(3)], keep_contents=True)
    for source in (caught.value, caught.value.events):
        assert drawn(draw.trace_of(source).strip())["lost message"] == 3

    run = World(4).run(ring_all_reduce, [contributions(rank, 4) for rank in range(4)], keep_contents=True)
    traces = (draw.trace_of(run), draw.trace_of(run.events), draw.trace(ring_all_reduce, 4))
    pictures = [draw.svg(trace.strip(), "ring") for trace in traces]
    assert pictures[0] == pictures[1] == pictures[2]


def test_events_that_cannot_be_drawn_are_refused_with_the_reason() -> None:
    without = World(2).run(ring_all_reduce, [contributions(rank, 2) for rank in range(2)])
    with pytest.raises(ValueError, match="keep_contents=True"):
        draw.trace_of(without)
    numbers = World(2).run(ring_all_reduce, [np.ones(2), np.ones(2)], keep_contents=True)
    with pytest.raises(ValueError, match="contributions"):
        draw.trace_of(numbers)
    with pytest.raises(TypeError, match=r"list is no run: draw what World\.run gave, its events, or its error"):
        draw.trace_of(numbers.results)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="300 ranks are too many to draw, at most 16"):
        draw.trace(ring_all_reduce, 300)
    with pytest.raises(ValueError, match="the steps to 2"):
        draw.trace(ring_all_reduce, 2).strip([3])


def test_a_run_with_more_ranks_than_can_be_drawn_is_refused() -> None:
    run = World(17).run(ring_all_reduce, [contributions(rank, 17) for rank in range(17)], keep_contents=True)
    with pytest.raises(ValueError, match="17 ranks are too many to draw, at most 16"):
        draw.trace_of(run)


def test_a_mean_is_drawn_as_the_sum_that_it_is_made_of() -> None:
    async def mean(rank: Rank, array: np.ndarray) -> np.ndarray:
        return np.float64(0.5) * (await ring_all_reduce(rank, array) / rank.size)

    traced = draw.trace(mean, 4)
    assert traced.error is None
    assert traced.describe() == draw.trace(ring_all_reduce, 4).describe()


def test_a_strip_that_would_be_metres_high_is_refused_with_steps_to_choose() -> None:
    traced = draw.trace(ring_all_reduce, 16)
    with pytest.raises(ValueError, match=r"31 steps of 16 ranks .* strip\(\[0, 1, 30\]\)"):
        traced.strip()
    assert traced.strip([0, 1, 30]).get_figheight() < 100
