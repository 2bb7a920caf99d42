"""Boxes of diagrams: where they are, and what distinguishes them."""

import pytest

from distlab.draw.diagram import box, canvas
from distlab.draw.style import HATCHES


def test_boxes_stand_in_inches_and_differ_in_colour_and_hatch() -> None:
    figure, axes = canvas(7.2, 3.0)
    assert axes.transData.transform((7.2, 3.0)) / figure.dpi == pytest.approx((7.2, 3.0))
    for number in range(4):
        box(axes, (number, 0), 0.8, 0.8, "text", number)
    assert len({patch.get_facecolor() for patch in axes.patches if patch.get_fill()}) == 4
    assert {patch.get_hatch() for patch in axes.patches if patch.get_hatch()} == set(HATCHES[1:4])
    assert axes.texts[3].get_position() == pytest.approx((3.4, 0.4))
