"""Boxes, arrows and labels of diagrams: where they are, what distinguishes them, equal bytes when drawn again."""

import itertools

import matplotlib.pyplot as plt
import pytest
from matplotlib.colors import to_rgb

from distlab.draw.diagram import box, canvas, row, tint
from distlab.draw.style import HATCHES, RANK_COLOURS


def test_a_unit_of_the_canvas_is_one_inch() -> None:
    figure, axes = canvas(7.2, 3.0)
    assert tuple(figure.get_size_inches()) == (7.2, 3.0)
    inches = axes.transData.transform((7.2, 3.0)) / figure.dpi
    assert inches == pytest.approx((7.2, 3.0))
    plt.close(figure)


def test_numbers_differ_in_colour_and_in_hatch() -> None:
    figure, axes = canvas(4, 4)
    for number in range(4):
        box(axes, (number, 0), 0.8, 0.8, "text", number)
    assert len({patch.get_facecolor() for patch in axes.patches if patch.get_fill()}) == 4
    assert {patch.get_hatch() for patch in axes.patches if patch.get_hatch()} == set(HATCHES[1:4])
    plt.close(figure)


def test_the_text_is_in_the_middle_of_its_box() -> None:
    figure, axes = canvas(4, 4)
    box(axes, (1, 2), 2, 1, "inside", 3)
    assert [text.get_text() for text in axes.texts] == ["inside"]
    assert axes.texts[0].get_position() == (2, 2.5)
    plt.close(figure)


def test_a_tint_is_between_white_and_the_colour() -> None:
    assert tint(RANK_COLOURS[0], 0) == (1, 1, 1)
    assert tint(RANK_COLOURS[0], 1) == pytest.approx(to_rgb(RANK_COLOURS[0]))


@pytest.mark.parametrize("count", [1, 2, 7])
def test_a_row_fills_its_room_with_equal_boxes_and_gaps(count: int) -> None:
    lefts, width = row(count, 1.0, 8.0, 0.2)
    assert len(lefts) == count
    assert lefts[0] == 1.0
    assert lefts[-1] + width == pytest.approx(8.0)
    assert all(right - left == pytest.approx(width + 0.2) for left, right in itertools.pairwise(lefts))
