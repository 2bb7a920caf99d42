"""The step strip shows what happened: read off the picture's parts and compared with the event log and with NumPy."""

import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch

from distlab import collectives, draw
from distlab.collectives import ring_all_reduce
from distlab.draw.steps.chunk_boxes import Boxes
from distlab.draw.steps.faults import first_fault
from distlab.draw.steps.storyboard import Storyboard, storyboard
from distlab.draw.style import svg
from distlab.simulate import World, contributions

ALL_REDUCE = collectives.ALL_REDUCE | {
    "hierarchical": partial(collectives.hierarchical_all_reduce, ranks_per_host=2),
    "hierarchical, three ranks per host": partial(collectives.hierarchical_all_reduce, ranks_per_host=3),
}
OTHERS = ("reduce", "reduce_scatter", "broadcast", "scatter", "gather", "all_gather", "all_to_all")
FRAMES = ("chunk", "no chunk", "finished chunk", "wrong chunk")


@pytest.fixture(autouse=True)
def course_style() -> Iterator[None]:
    draw.apply_style()
    yield
    plt.close("all")


def board(program: Callable, size: int, length: int | None = None, collective: str = "all_reduce") -> Storyboard:
    return storyboard(draw.trace(program, size, length, collective), None, None, 0)


def drawn(figure: Figure) -> Counter:
    """How many shapes of each name the strip has, its legend left out."""
    counts = Counter()
    for collection in figure.axes[0].collections:
        if isinstance(collection, PathCollection) and collection.get_label() != "sample":
            counts[collection.get_label()] += len(collection.get_offsets())
    return counts


def places(figure: Figure, *names: str) -> list[tuple[float, float]]:
    """The lower left corners of the shapes of these names, column by column and in each from the top down."""
    found = [
        tuple(np.round(place, 6))
        for collection in figure.axes[0].collections
        if collection.get_label() in names
        for place in collection.get_offsets()
    ]
    return sorted(found, key=lambda place: (place[0], -place[1]))


def shares(figure: Figure, size: int) -> dict[tuple[int, int, int], set[int]]:
    """By step, rank and chunk, the shares whose segments lie in that box of a strip in one line; one chunk a rank."""
    corners = places(figure, *FRAMES)
    lefts, bottoms = sorted({x for x, _ in corners}), sorted({y for _, y in corners}, reverse=True)
    assert len(bottoms) == size
    assert len(lefts) % size == 0
    content = {(*divmod(lefts.index(x), size), bottoms.index(y)): set() for x, y in corners}
    for owner in range(size):
        for x, y in places(figure, f"share {owner}"):
            column = max(index for index, left in enumerate(lefts) if left <= x + 1e-6)
            row = min(index for index, bottom in enumerate(bottoms) if bottom <= y + 1e-6)
            content[(*divmod(column, size), row)].add(owner)
    return {(step, rank, chunk): owners for (step, chunk, rank), owners in content.items()}


def ring_by_numpy(size: int) -> np.ndarray:
    """By step, rank, chunk and share, whether the share has been added, in a ring all-reduce that NumPy plays."""
    held = np.zeros((size, size, size), bool)
    held[np.arange(size), :, np.arange(size)] = True
    after = [held.copy()]
    for step in range(2 * (size - 1)):
        before = held.copy()
        for rank in range(size):
            chunk = (rank - step - 1) % size if step < size - 1 else (rank - step + size - 1) % size
            incoming = before[(rank - 1) % size, chunk]
            held[rank, chunk] = held[rank, chunk] | incoming
        after.append(held.copy())
    return np.array(after)


@pytest.mark.parametrize("size", [2, 3, 4])
def test_each_box_of_the_picture_holds_the_shares_that_numpy_reckons(size: int) -> None:
    figure = draw.step_strip(draw.trace(ring_all_reduce, size))
    expected = ring_by_numpy(size)
    content = shares(figure, size)
    assert len(content) == expected[..., 0].size
    for (step, rank, chunk), owners in content.items():
        assert owners == set(np.flatnonzero(expected[step, rank, chunk])), (step, rank, chunk)


@pytest.mark.parametrize("size", range(2, 9))
def test_what_the_ranks_hold_is_what_numpy_reckons(size: int) -> None:
    story = board(ring_all_reduce, size, 2 * size)
    expected = ring_by_numpy(size)
    assert story.last == len(expected) - 1 == 2 * (size - 1)
    for step, by_rank in enumerate(story.held):
        for rank, held in enumerate(by_rank):
            for position, element in enumerate(held):
                assert element.ranks == np.flatnonzero(expected[step, rank, position // 2]).tolist()
                assert element.positions == {position}


@pytest.mark.parametrize("size", [2, 4, 8])
def test_in_recursive_doubling_each_step_doubles_what_a_rank_holds(size: int) -> None:
    story = board(collectives.recursive_doubling_all_reduce, size)
    for step, by_rank in enumerate(story.held):
        for rank, held in enumerate(by_rank):
            group = [other for other in range(size) if other >> step == rank >> step]
            assert all(element.ranks == group for element in held)


@pytest.mark.parametrize("size", range(2, 9))
@pytest.mark.parametrize("name", ALL_REDUCE)
def test_in_the_end_of_an_all_reduce_every_chunk_is_finished(name: str, size: int) -> None:
    for length in (size, 2 * size + 1, max(1, size - 1)):
        story = board(ALL_REDUCE[name], size, length)
        assert first_fault(story.task, story.held, True) is None
        stamps = [stamp.shape.name for rank in range(size) for stamp in Boxes(story).of_rank(story.last, rank, 0, 0)]
        counts = Counter(stamps)
        assert counts["finished chunk"] == size * len(story.boxes)
        assert all(counts[f"share {owner}"] == size * len(story.boxes) for owner in range(size))


@pytest.mark.parametrize("size", range(1, 9))
@pytest.mark.parametrize("name", OTHERS)
def test_in_the_end_of_other_collectives_each_rank_holds_what_it_should(name: str, size: int) -> None:
    story = board(getattr(collectives, name), size, 2 * size, name)
    for rank in range(size):
        for wanted, held in zip(story.task.ends[rank], story.held[-1][rank], strict=True):
            assert wanted is None or wanted == held
    assert story.first_fault() is None


def test_an_all_to_all_fills_up_as_the_chunks_arrive() -> None:
    story = board(collectives.all_to_all, 4, collective="all_to_all")
    wrong = [
        sum(
            held != wanted
            for rank in range(4)
            for held, wanted in zip(by_rank[rank], story.task.ends[rank], strict=True)
        )
        for by_rank in story.held
    ]
    assert wrong == [12, 8, 4, 0]


@pytest.mark.parametrize("name", ALL_REDUCE)
def test_an_arrow_for_each_message_and_a_box_for_each_chunk_of_each_rank_after_each_step(name: str) -> None:
    trace = draw.trace(ALL_REDUCE[name], 4)
    figure = draw.step_strip(trace)
    messages = trace.events.select("send")
    assert sum(isinstance(patch, FancyArrowPatch) for patch in figure.axes[0].patches) == len(messages)
    story = storyboard(trace, None, None, 0)
    assert [message.step for message in story.messages] == sorted(message.step for message in story.messages)
    columns = len(draw_lines(figure))
    assert sum(drawn(figure)[frame] for frame in FRAMES) == 4 * len(story.boxes) * columns


def draw_lines(figure: Figure) -> list[str]:
    """The titles of the columns that are drawn."""
    return [name for name in drawn(figure).elements() if name == "text start" or name.startswith("text step ")]


def test_no_rank_sends_or_receives_twice_in_a_step() -> None:
    for program in ALL_REDUCE.values():
        for size in (3, 5, 8):
            messages = board(program, size).messages
            assert max(Counter((message.step, message.to) for message in messages).values()) == 1


def test_events_that_cannot_be_drawn_are_refused_with_the_reason() -> None:
    without = World(2).run(ring_all_reduce, [contributions(rank, 2) for rank in range(2)])
    with pytest.raises(ValueError, match="keep_contents=True"):
        draw.step_strip(without)
    numbers = World(2).run(ring_all_reduce, [np.ones(2), np.ones(2)], keep_contents=True)
    with pytest.raises(ValueError, match="contributions"):
        draw.step_strip(numbers)
    with pytest.raises(ValueError, match="the steps to 2"):
        draw.step_strip(draw.trace(ring_all_reduce, 2), steps=[3])
    with pytest.raises(ValueError, match="no collective 'all-reduce'"):
        draw.trace(ring_all_reduce, 2, collective="all-reduce")


def test_the_description_names_each_message() -> None:
    text = draw.describe_steps(draw.trace(ring_all_reduce, 2))
    assert text == (
        "Step strip of 2 ranks in 2 steps. Step 1: rank 0 sends chunk 0 to rank 1; rank 1 sends chunk 1 to rank 0. "
        "Step 2: rank 0 sends chunk 1 to rank 1; rank 1 sends chunk 0 to rank 0. "
        "In the end every rank holds what it should."
    )


@pytest.mark.parametrize("program", [ring_all_reduce, collectives.halving_doubling_all_reduce])
def test_the_same_run_is_the_same_well_formed_svg_with_its_description(program: Callable) -> None:
    trace = draw.trace(program, 3)
    pictures = [svg(draw.step_strip(trace), draw.describe_steps(trace)) for _ in range(2)]
    assert pictures[0] == pictures[1]
    root = ElementTree.fromstring(pictures[0])
    assert root.find("{http://www.w3.org/2000/svg}title").text == draw.describe_steps(trace)


def test_a_chunk_whose_place_is_taken_is_named_when_it_is_sent() -> None:
    story = board(collectives.all_to_all, 4, collective="all_to_all")
    labels = [
        stamp.shape.name
        for step in range(story.last)
        for rank in range(4)
        for stamp in Boxes(story).marks(step, rank, 0, 0)
        if stamp.shape.name.startswith("text")
    ]
    # In the last step every rank sends the chunk on whose place it put what came in the first.
    assert sorted(labels) == ["text 0.3", "text 1.0", "text 2.1", "text 3.2"]
