"""The style of every picture: equal bytes, a text description, colours that distinguish ranks."""

import itertools
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import ipywidgets
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


def picture() -> Figure:
    """A picture with everything that could make SVG differ: clip paths, markers, hatches, text."""
    figure, (left, right) = plt.subplots(1, 2)
    for number in range(3):
        left.plot([0, 1, 2], [number, 2, 1], label=f"rank {number}")
        right.bar(number, number + 1, hatch=style.HATCHES[number])
    left.legend()
    left.set_xlabel("steps µs²")
    return figure


def perceived(colour: str, kind: str) -> np.ndarray:
    """A colour in CIELAB as someone with that kind of colour blindness sees it."""
    rgb = np.array(to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    perceived_rgb = np.clip(np.asarray(COLOUR_BLINDNESS[kind]) @ linear, 0, 1)
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    x, y, z = np.cbrt(to_xyz @ perceived_rgb / [0.9505, 1, 1.089])
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def test_the_description_is_the_title_whatever_is_in_it(tmp_path: Path) -> None:
    description = r"rank 0 < rank 1 & \"rank 2\" > 'rank 3', \1 and \g<0>: 2(p−1) messages of ½ n bytes"
    draw.save(picture(), tmp_path / "picture.svg", description)
    root = ElementTree.parse(tmp_path / "picture.svg").getroot()
    assert (root.tag, root.get("role"), root.get("aria-label")) == (f"{SVG}svg", "img", description)
    assert (root[0].tag, root[0].text) == (f"{SVG}title", description)


@pytest.mark.slow
def test_a_shown_picture_or_widget_carries_its_description_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    displayed = []
    monkeypatch.setattr(style, "display", lambda data, raw: displayed.append(data))
    slider = ipywidgets.FloatSlider(0.5)
    draw.show(picture(), "what it shows")
    draw.show_widget(slider, "A slider.")
    shown, widget = displayed
    assert shown["text/plain"] == "what it shows"
    assert plt.get_fignums() == []
    assert shown["image/svg+xml"] == style.svg(picture(), "what it shows")
    assert widget["text/plain"] == "A slider."
    assert widget["application/vnd.jupyter.widget-view+json"]["model_id"] == slider.model_id


def test_colours_can_be_distinguished() -> None:
    for kind in COLOUR_BLINDNESS:
        colours = [perceived(colour, kind) for colour in draw.RANK_COLOURS]
        closest = min(np.linalg.norm(first - second) for first, second in itertools.combinations(colours, 2))
        assert closest > 8, kind  # a difference of about 2 can just be seen side by side
