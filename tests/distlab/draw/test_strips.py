"""Strips show their data: boxes where there was work, arrows for messages, cells for samples."""

import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import FancyArrowPatch, Rectangle

from distlab import draw
from distlab.profiling.messages import Message


def test_a_box_for_each_interval_in_its_device_s_row_and_colour() -> None:
    first = [draw.Interval(10.0, 10.5, "compute"), draw.Interval(10.5, 10.6, "update")]
    second = [draw.Interval(10.1, 10.4, "compute")]
    figure = draw.busy({"two": [first, second]}, ["device 0", "device 1", "device 2"])
    axes = figure.axes[0]
    boxes = [(box.get_x(), box.get_width(), box.get_y() + box.get_height() / 2) for box in axes.patches]
    assert boxes == [
        (0, pytest.approx(500), pytest.approx(0)),
        (pytest.approx(500), pytest.approx(100), pytest.approx(0)),
        (pytest.approx(100), pytest.approx(300), pytest.approx(1)),
    ]
    edges = [to_hex(box.get_edgecolor()).upper() for box in axes.patches]
    assert edges == [draw.RANK_COLOURS[0], draw.RANK_COLOURS[0], draw.RANK_COLOURS[1]]
    assert [bool(box.get_hatch()) for box in axes.patches] == [False, True, False]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["device 0", "device 1", "device 2"]
    assert [text.get_text() for text in figure.legends[0].texts] == ["compute", "update"]


def test_an_arrow_for_each_message_in_the_colour_of_its_sender() -> None:
    messages = [Message(1, 1, 0), Message(2, 0, 1)]
    figure = draw.exchange({"pair": messages, "silence": []}, ["device 0", "device 1"])
    arrows = [patch for patch in figure.axes[0].patches if isinstance(patch, FancyArrowPatch)]
    assert [to_hex(arrow.get_edgecolor()).upper() for arrow in arrows] == [draw.RANK_COLOURS[1], draw.RANK_COLOURS[0]]
    assert figure.axes[1].patches[:] == []
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == ["start", "1", "2"]


def test_a_filled_cell_for_each_sample_that_a_worker_saw() -> None:
    figure = draw.seen({"half": [[0, 3], []], "all": [range(4), range(4)]}, files=2, per_file=2)
    filled = [
        sum(to_hex(patch.get_facecolor()) != "#ffffff" for patch in axes.patches if isinstance(patch, Rectangle))
        for axes in figure.axes
    ]
    assert filled == [2, 8]
    assert [label.get_text() for label in figure.axes[1].get_xticklabels()] == ["file 0", "file 1"]
