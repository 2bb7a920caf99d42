"""A wrong program is drawn as it ran: the fault is marked where it came in, and the strip ends where the run did."""

from collections import Counter
from collections.abc import Callable, Iterator

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch

from distlab import draw
from distlab.collectives import chunks_of, ring_all_reduce
from distlab.draw.style import svg
from distlab.simulate import DeadlockError, Rank, SimulationError, World, contributions


@pytest.fixture(autouse=True)
def course_style() -> Iterator[None]:
    draw.apply_style()
    yield
    plt.close("all")


def drawn(figure: Figure) -> Counter:
    """How many shapes of each name the strip has, its legend left out."""
    counts = Counter()
    for collection in figure.axes[0].collections:
        if isinstance(collection, PathCollection) and collection.get_label() != "sample":
            counts[collection.get_label()] += len(collection.get_offsets())
    return counts


def ring(
    off_by_one: bool = False, steps_left_out: int = 0, twice_on: int | None = None, leaves: int | None = None
) -> Callable:
    """A ring all-reduce with a mistake planted in it."""

    async def program(rank: Rank, array: np.ndarray) -> np.ndarray:
        total = array.copy()
        chunks = chunks_of(total, rank.size)
        right, left = (rank.index + 1) % rank.size, (rank.index - 1) % rank.size
        for step in range(rank.size - 1):
            growing = chunks[(rank.index - step - 1 + off_by_one) % rank.size]
            received = await rank.exchange(right, chunks[(rank.index - step) % rank.size], left)
            await rank.reduce(growing, received)
            if rank.index == twice_on and step == 1:
                await rank.reduce(growing, received)
        if rank.index == leaves:
            return total
        for step in range(rank.size - 1 - steps_left_out):
            outgoing = chunks[(rank.index - step + 1) % rank.size]
            chunks[(rank.index - step) % rank.size][:] = await rank.exchange(right, outgoing, left)
        return total

    return program


async def sends_and_leaves(rank: Rank, array: np.ndarray) -> np.ndarray:
    await rank.send((rank.index + 1) % rank.size, array)
    return array


def test_a_share_of_another_chunk_is_marked_where_it_came_in_first() -> None:
    trace = draw.trace(ring(off_by_one=True), 4)
    first = drawn(draw.step_strip(trace, steps=[0, 1]))
    assert first["wrong chunk"] == 4
    assert [first[f"strange share {owner}"] for owner in range(4)] == [1, 1, 1, 1]
    assert drawn(draw.step_strip(trace, steps=[0]))["wrong chunk"] == 0
    assert "After step 1 chunk 0 of rank 0 has chunk 3 of rank 3 in it." in draw.describe_steps(trace)


def test_a_missing_last_step_leaves_marked_gaps() -> None:
    trace = draw.trace(ring(steps_left_out=1), 4)
    end = drawn(draw.step_strip(trace, steps=[5]))
    assert (end["finished chunk"], end["wrong chunk"]) == (12, 4)
    missing = sum(end[f"missing share {owner}"] for owner in range(4))
    assert missing == 16 * 4 - sum(end[f"share {owner}"] for owner in range(4)) > 0
    assert drawn(draw.step_strip(trace, steps=[4]))["wrong chunk"] == 0
    assert "In the end chunk" in draw.describe_steps(trace)


def test_a_share_added_twice_is_marked_from_that_step_on_wherever_it_goes() -> None:
    trace = draw.trace(ring(twice_on=1), 4)
    marked = []
    for step in range(7):
        counts = drawn(draw.step_strip(trace, steps=[step]))
        assert counts["share 0 twice"] == counts["share 3 twice"] == counts["wrong chunk"]
        marked.append(counts["wrong chunk"])
    assert marked[:2] == [0, 0]
    assert marked[2] == 1
    assert marked[-1] == 4
    assert "After step 2 chunk 3 of rank 1 has rank 0's share twice and rank 3's share twice." in draw.describe_steps(
        trace
    )


def test_a_fault_is_marked_by_more_than_colour() -> None:
    counts = drawn(draw.step_strip(draw.trace(ring(twice_on=1), 4), steps=[2]))
    assert counts["text 2×"] >= 2
    assert counts["text !"] == 1


def test_a_deadlock_is_drawn_up_to_where_it_stopped() -> None:
    trace = draw.trace(ring(leaves=2), 4)
    assert isinstance(trace.error, DeadlockError)
    figure = draw.step_strip(trace)
    counts = drawn(figure)
    sent = len(trace.events.select("send"))
    received = len(trace.events.select("receive"))
    assert sent > received
    assert sum(isinstance(patch, FancyArrowPatch) for patch in figure.axes[0].patches) == sent
    assert counts["lost message"] == sent - received
    assert {"text waits for rank 0", "text waits for rank 2", "text waits for rank 3"} <= set(counts)
    assert counts["wrong chunk"] == 0  # what is not finished may still come
    assert "Then it stopped: deadlock: rank 0 has waited" in draw.describe_steps(trace)


def test_a_run_that_stops_at_once_and_one_without_messages_can_be_drawn() -> None:
    async def only_waits(rank: Rank, array: np.ndarray) -> None:
        await rank.receive((rank.index + 1) % rank.size)

    assert drawn(draw.step_strip(draw.trace(only_waits, 2)))["text start"] == 1
    assert drawn(draw.step_strip(draw.trace(ring_all_reduce, 1)))["finished chunk"] == 1


def test_an_error_its_events_and_a_run_are_drawn_like_a_trace() -> None:
    with pytest.raises(SimulationError) as caught:
        World(3).run(sends_and_leaves, [contributions(rank, 3) for rank in range(3)], keep_contents=True)
    for source in (caught.value, caught.value.events):
        assert drawn(draw.step_strip(source))["lost message"] == 3

    run = World(4).run(ring_all_reduce, [contributions(rank, 4) for rank in range(4)], keep_contents=True)
    pictures = [svg(draw.step_strip(source), "ring") for source in (run, draw.trace(ring_all_reduce, 4))]
    assert pictures[0] == pictures[1]
