"""The time line of a pipeline: one box for each pass, where and when it was, and grey where a stage waits."""

import matplotlib.pyplot as plt
import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

from distlab import draw
from distlab.model_parallel.pipelines import simulate

GREY = "#eeeeee"


@pytest.mark.parametrize(("schedule", "chunks"), [("gpipe", 1), ("1f1b", 1), ("interleaved", 2)])
def test_every_pass_has_its_box(schedule: str, chunks: int) -> None:
    timing = simulate(schedule, 4, 8, chunks)
    figure = draw.pipeline_schedules({"one": timing})
    (axes,) = figure.axes
    boxes = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    waiting = [box for box in boxes if to_hex(box.get_facecolor()) == GREY and box.get_fill()]
    assert [box.get_width() for box in waiting] == [timing.seconds] * 4
    drawn = {
        (round(box.get_x(), 6), round(box.get_x() + box.get_width(), 6), round(box.get_y() + 0.4))
        for box in boxes
        if box not in waiting
    }
    done = {(round(work.start, 6), round(work.end, 6), work.stage) for of_stage in timing.works for work in of_stage}
    assert drawn == done
    # Forward passes are not hatched, backward ones are: a difference that colour alone does not carry.
    assert sum(bool(box.get_hatch()) for box in boxes) == 4 * 8 * chunks
    plt.close(figure)


def test_schedules_share_one_time_axis_and_say_their_bubble() -> None:
    timings = {"GPipe": simulate("gpipe", 4, 4), "interleaved": simulate("interleaved", 4, 4, 2)}
    figure = draw.pipeline_schedules(timings)
    limits = {axes.get_xlim() for axes in figure.axes}
    assert len(limits) == 1 and next(iter(limits))[1] >= timings["GPipe"].seconds
    titles = [axes.get_title() or axes.get_title(loc="left") for axes in figure.axes]
    assert titles == ["GPipe: 21 units of time, bubble 43 %", "interleaved: 16.5 units of time, bubble 27 %"]
    plt.close(figure)


def test_numbers_stand_only_where_there_is_room() -> None:
    few, many = (
        sum(bool(text.get_text()) for text in draw.pipeline_schedules({"": simulate("1f1b", 2, count)}).axes[0].texts)
        for count in (4, 64)
    )
    assert few == 2 * 2 * 4
    assert many < 2 * 2 * 64
    plt.close("all")
