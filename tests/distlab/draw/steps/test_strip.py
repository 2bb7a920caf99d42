"""The step strip shows what happened: read off the picture's parts and compared with the event log and with NumPy."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from distlab import draw
from distlab.collectives import ring_all_reduce
from tests.distlab.draw.programs import FRAMES, ring_by_numpy


def places(figure: Figure, *names: str) -> list[tuple[float, float]]:
    """The lower left corners of the shapes of these names, column by column and in each from the top down."""
    corners = [
        tuple(np.round(place, 6))
        for collection in figure.axes[0].collections
        if collection.get_label() in names
        for place in collection.get_offsets()
    ]
    return sorted(corners, key=lambda place: (place[0], -place[1]))


def shares(figure: Figure, size: int) -> dict[tuple[int, int, int], set[int]]:
    """By step, rank and chunk, the shares whose segments are in that box of a strip in one line; one chunk per rank."""
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


@pytest.mark.parametrize("size", [2, 4])
def test_each_box_of_the_picture_holds_the_shares_that_numpy_computes(size: int) -> None:
    figure = draw.trace(ring_all_reduce, size).strip()
    expected = ring_by_numpy(size)
    content = shares(figure, size)
    assert len(content) == expected[..., 0].size
    for (step, rank, chunk), owners in content.items():
        assert owners == set(np.flatnonzero(expected[step, rank, chunk])), (step, rank, chunk)


def test_the_description_names_each_message() -> None:
    text = draw.trace(ring_all_reduce, 2).describe()
    assert text == (
        "Step strip of 2 ranks in 2 steps. Step 1: rank 0 sends chunk 0 to rank 1; rank 1 sends chunk 1 to rank 0. "
        "Step 2: rank 0 sends chunk 1 to rank 1; rank 1 sends chunk 0 to rank 0. "
        "In the end every rank holds what it should."
    )
