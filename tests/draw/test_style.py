"""The style of every picture: equal bytes, a text description, colours that tell ranks apart; and the shared plots."""

import itertools
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from distlab import draw
from distlab.draw import style

SVG = "{http://www.w3.org/2000/svg}"

# Machado, Oliveira, Fernandes (2009), "A Physiologically-based Model for Simulation of Color Vision Deficiency": the
# matrices for complete loss of one kind of cone, on linear RGB.
COLOUR_BLINDNESS = {
    "none": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}

# A program that draws the same picture as `picture` and writes it to the file it is given.
DRAW_IN_ANOTHER_PROCESS = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from tests.draw.test_style import picture
from distlab import draw
draw.apply_style()
draw.save(picture(), Path(sys.argv[2]), "Bars & a line")
"""


@pytest.fixture(autouse=True)
def course_style() -> Iterator[None]:
    draw.apply_style()
    yield
    plt.close("all")


def picture() -> Figure:
    """A picture with what makes SVG differ: clip paths, markers, hatches, text."""
    figure, (left, right) = plt.subplots(1, 2)
    for number in range(3):
        left.plot([0, 1, 2], [number, 2, 1], label=f"rank {number}")
        right.bar(number, number + 1, hatch=style.HATCHES[number])
    left.legend()
    left.set_xlabel("steps µs²")
    return figure


def recording(samples: int, cores: int, gpus: int) -> SimpleNamespace:
    """What `metrics.Utilisation` records; core i is busy 10 i %, GPU i 50 + i %."""
    return SimpleNamespace(
        seconds=0.1 * np.arange(1, samples + 1),
        cores=np.full((samples, cores), 10.0 * np.arange(cores)),
        gpus=np.full((samples, gpus), 50.0 + np.arange(gpus)),
    )


def perceived(colour: str, kind: str) -> np.ndarray:
    """A colour in CIELAB as someone with that kind of colour blindness sees it."""
    rgb = np.array(to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(np.asarray(COLOUR_BLINDNESS[kind]) @ linear, 0, 1)
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    x, y, z = np.cbrt(to_xyz @ seen / [0.9505, 1, 1.089])
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def test_the_same_figure_gives_the_same_bytes_twice(tmp_path: Path) -> None:
    for name in ("first.svg", "second.svg"):
        draw.save(picture(), tmp_path / name, "Bars & a line")
    assert (tmp_path / "first.svg").read_bytes() == (tmp_path / "second.svg").read_bytes()


@pytest.mark.slow
def test_another_process_gives_the_same_bytes(tmp_path: Path) -> None:
    draw.save(picture(), tmp_path / "here.svg", "Bars & a line")
    command = [
        sys.executable,
        "-c",
        DRAW_IN_ANOTHER_PROCESS,
        str(Path(__file__).parents[2]),
        str(tmp_path / "there.svg"),
    ]
    environment = os.environ | {"PYTHONHASHSEED": "7", "SOURCE_DATE_EPOCH": "1", "MPLBACKEND": "svg"}
    subprocess.run(command, check=True, timeout=300, env=environment)
    assert (tmp_path / "here.svg").read_bytes() == (tmp_path / "there.svg").read_bytes()


def test_no_date_stands_in_a_picture() -> None:
    assert "date" not in style.svg(picture(), "a picture").lower()


@pytest.mark.parametrize(
    "description",
    [
        "Two ranks send to each other.",
        "rank 0 < rank 1 & \"rank 2\" > 'rank 3'",
        r"cost \alpha + n\beta, \1 and \g<0>",
        "2(p−1) messages of ½ n bytes",
    ],
)
def test_the_description_is_the_title_whatever_is_in_it(description: str, tmp_path: Path) -> None:
    draw.save(picture(), tmp_path / "picture.svg", description)
    root = ElementTree.parse(tmp_path / "picture.svg").getroot()
    assert root.tag == f"{SVG}svg"
    assert root.get("role") == "img"
    assert root.get("aria-label") == description
    assert root[0].tag == f"{SVG}title"
    assert root[0].text == description


def test_a_shown_picture_carries_its_description_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = []
    monkeypatch.setattr(style, "display", lambda data, raw: shown.append((data, raw)))
    draw.show(picture(), "what it shows")
    ((data, raw),) = shown
    assert raw
    assert data["text/plain"] == "what it shows"
    assert data["image/svg+xml"] == style.svg(picture(), "what it shows")


def test_showing_and_saving_close_the_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(style, "display", lambda data, raw: None)
    draw.show(picture(), "shown")
    draw.save(picture(), tmp_path / "saved.svg", "saved")
    assert plt.get_fignums() == []


def test_text_becomes_paths_so_that_no_font_is_needed() -> None:
    assert "<text" not in style.svg(picture(), "a picture")


@pytest.mark.parametrize("look", [draw.RANK_COLOURS, draw.MARKERS, draw.DASHES, style.HATCHES])
def test_eight_ranks_look_different(look: tuple) -> None:
    assert len(look) == len(set(look)) == 8


@pytest.mark.parametrize("kind", COLOUR_BLINDNESS)
def test_colours_can_be_told_apart(kind: str) -> None:
    colours = [perceived(colour, kind) for colour in draw.RANK_COLOURS]
    closest = min(np.linalg.norm(one - other) for one, other in itertools.combinations(colours, 2))
    assert closest > 8  # a difference of about 2 can just be seen side by side


def test_lines_take_colour_marker_and_dash_by_number() -> None:
    axes = plt.figure().subplots()
    lines = [axes.plot([0, 1])[0] for _ in range(8)]
    assert tuple(line.get_color() for line in lines) == draw.RANK_COLOURS
    assert tuple(line.get_marker() for line in lines) == draw.MARKERS
    assert len({(line.get_linestyle(), str(line._unscaled_dash_pattern)) for line in lines}) == 8


def test_bars_have_the_given_lengths_names_and_numbers_from_the_top_down() -> None:
    values = {"one device": 1234.5, "two devices": 2000.0, "none": 0.0}
    figure = draw.bars(values, "images per second")
    (axes,) = figure.axes
    assert [bar.get_width() for bar in axes.patches] == list(values.values())
    assert [text.get_text() for text in axes.get_yticklabels()] == list(values)
    assert [text.get_text() for text in axes.texts] == ["1,234", "2,000", "0"]
    assert axes.get_xlabel() == "images per second"
    heights = [axes.transData.transform((0, tick))[1] for tick in axes.get_yticks()]
    assert heights == sorted(heights, reverse=True)


def test_each_number_stands_at_the_end_of_its_bar() -> None:
    figure = draw.bars({"a": 3.0, "b": 1.0}, "seconds", number_format="{:.1f} s")
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.texts] == ["3.0 s", "1.0 s"]
    assert [text.xy for text in axes.texts] == [(3.0, 0), (1.0, 1)]


def test_bars_differ_in_more_than_colour() -> None:
    figure = draw.bars({f"bar {number}": number for number in range(8)}, "length")
    (axes,) = figure.axes
    assert len({bar.get_facecolor() for bar in axes.patches}) == 8
    assert len({bar.get_hatch() for bar in axes.patches}) == 8


def test_more_bars_than_colours_can_be_drawn() -> None:
    figure = draw.bars({f"bar {number}": number for number in range(12)}, "length")
    assert len(figure.axes[0].patches) == 12
    assert style.svg(figure, "bars")


def test_a_grid_shows_each_answer_at_its_row_and_column() -> None:
    answers = {"weights": {"SavedModel": "yes", "h5 file": "partly"}, "code": {"h5 file": "no", "SavedModel": "no"}}
    looks = {"yes": ("full", "kept"), "partly": ("left", "with more work"), "no": ("none", "not kept")}
    figure = draw.grid(answers, ["SavedModel", "h5 file"], looks)
    (axes,) = figure.axes
    circles = {(line.get_xdata()[0], line.get_ydata()[0]): line.get_fillstyle() for line in axes.lines}
    assert circles == {(0, 0): "full", (1, 0): "left", (0, 1): "none", (1, 1): "none"}
    assert [text.get_text() for text in axes.get_yticklabels()] == ["weights", "code"]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["Saved\nModel", "h5\nfile"]
    assert axes.yaxis_inverted()
    meaning = axes.get_xlabel()
    assert [part in meaning for part in ("full: kept", "half: with more work", "empty: not kept")] == [True] * 3


@pytest.mark.parametrize(("cores", "gpus"), [(1, 0), (2, 0), (4, 2), (10, 0)])
def test_utilisation_has_a_row_with_the_given_values_for_each_device(cores: int, gpus: int) -> None:
    recorded = recording(5, cores, gpus)
    figure = draw.utilisation(recorded)
    names = [*(f"core {i}" for i in range(cores)), *(f"GPU {i}" for i in range(gpus))]
    assert [axes.get_ylabel() for axes in figure.axes] == names
    columns = [*recorded.cores.T, *recorded.gpus.T]
    for axes, busy in zip(figure.axes, columns, strict=True):
        (line,) = axes.lines
        assert np.array_equal(line.get_xdata(), recorded.seconds)
        assert np.array_equal(line.get_ydata(), busy)
        assert axes.get_ylim() == (0, 105)
    assert "seconds" in figure.axes[-1].get_xlabel()


def test_a_recording_without_samples_can_be_drawn() -> None:
    figure = draw.utilisation(recording(0, 2, 1))
    assert [axes.get_ylabel() for axes in figure.axes] == ["core 0", "core 1", "GPU 0"]
    assert style.svg(figure, "nothing recorded")


def test_a_figure_is_written_the_same_again_without_the_style_too() -> None:
    program = (
        "from distlab.draw import style\nimport matplotlib.pyplot as plt\n"
        "figure, axes = plt.subplots()\naxes.plot([1, 2], [3, 4])\nprint(style.svg(figure, 'a line'))"
    )
    written = [subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout for _ in "12"]
    assert b"clip-path" in written[0]
    assert written[0] == written[1]
