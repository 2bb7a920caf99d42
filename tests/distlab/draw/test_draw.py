"""What cannot be drawn is one sentence that says what to give, not an empty picture."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from distlab import collectives, draw
from distlab.runtime.arguments import WrongArgument
from distlab.simulate import World

RUN = World(2).run(collectives.ring_all_reduce, [np.ones(2)] * 2)
WITHOUT_EVENTS = World(2).run(collectives.ring_all_reduce, [np.ones(2)] * 2, keep_events=False)
INTERVAL = draw.Interval(0, 1, "computing")
Call = Callable[[Any], object]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda drawing: drawing.show(None, "x"), "figure is None, which a function without `return` gives; give a"),
        (lambda drawing: drawing.show(drawing.canvas(1, 1), "x"), "figure is of the type tuple"),
        (lambda drawing: drawing.show(drawing.bars, "x"), "figure is the function bars, which was not called"),
        (lambda drawing: drawing.show("x", drawing.canvas(1, 1)[0]), "figure is the text 'x'"),
        (lambda drawing: drawing.show(drawing.canvas(1, 1)[0], None), "description is None"),
        (lambda drawing: drawing.show_widget(drawing.canvas(1, 1)[0], "x"), "draw.show is for figures"),
        (lambda drawing: drawing.show_widget(drawing.Stepper, "x"), "widget is the class Stepper"),
        (lambda drawing: drawing.bars({}, "x"), "values is empty"),
        (lambda drawing: drawing.bars([1, 2], "x"), "values is of the type list; give a dictionary"),
        (lambda drawing: drawing.bars({"a": "1"}, "x"), "the value of 'a' is the text '1'"),
        (lambda drawing: drawing.bars({"a": 1}, "x", ",.0f"), "give a format in braces"),
        (lambda drawing: drawing.grid({"row": {}}, ["a"], {}), "The row 'row' has no answer for the column 'a'"),
        (lambda drawing: drawing.utilisation([1]), "recorded is of the type list"),
        (lambda drawing: drawing.timeline(WITHOUT_EVENTS), "This run has kept no events"),
        (lambda drawing: drawing.bytes_per_link(RUN.events, 1), "size is 1; give a whole number of 2 or more"),
        (lambda drawing: drawing.trace(None, 4), "program is None"),
        (lambda drawing: drawing.trace(collectives.ring_all_reduce, 4, 8 / 2), "length is 4.0; .* or divide by //"),
        (lambda drawing: drawing.trace(collectives.ring_all_reduce, 2).strip(1), "steps is 1; give a list"),
        (lambda drawing: drawing.Stepper(collectives.ring_all_reduce, sizes=4), "sizes is 4; give a list"),
        (lambda drawing: drawing.Stepper(collectives.ring_all_reduce, sizes=[4, 32]), "32 ranks are too many to draw"),
        (lambda drawing: drawing.busy({}, ["a"]), "runs is empty"),
        (lambda drawing: drawing.busy({"run": [INTERVAL]}, ["a"]), "a row of 'run' is of the type Interval"),
        (lambda drawing: drawing.busy({"run": [[INTERVAL], []]}, ["a"]), "'run' has 2 rows for 1 devices"),
        (
            lambda drawing: drawing.exchange({"ring": [(1, 0, 1)]}, ["a", "b"]),
            "an entry of 'ring' is of the type",
        ),
        (lambda drawing: drawing.pipeline_schedules({"a": "1f1b"}), "the timing 'a' is the text '1f1b'"),
        (lambda drawing: drawing.box(drawing.canvas(1, 1)[0], (0, 0), 1, 1), "axes is of the type Figure"),
        (lambda drawing: drawing.tint("red", 25), "share is 25; give a number from 0 to 1"),
    ],
)
def test_what_cannot_be_drawn_is_one_sentence(call: Call, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        call(draw)


def test_the_arguments_of_save_are_not_swapped_in_silence(tmp_path: Path) -> None:
    file: Any = tmp_path / "picture.svg"
    with pytest.raises(WrongArgument, match="give a figure"):
        draw.save(file, draw.canvas(1, 1)[0], "x")  # type: ignore[arg-type]
    draw.save(draw.canvas(1, 1)[0], str(file), "x")
    assert file.read_text().startswith("<?xml")
