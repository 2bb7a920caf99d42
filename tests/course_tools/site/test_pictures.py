"""The figures of the pages: smaller files with the same label, references that lead somewhere, and the same picture."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from matplotlib import pyplot as plt

from course_tools.site import pictures
from distlab import draw

DESCRIPTION = 'Two lines & "ticks" <rising>.'


@pytest.fixture
def figure() -> str:
    """A figure with text, lines, hatches and a picture of pixels, as the notebooks have it."""
    figure, axes = plt.subplots()
    axes.plot([1, 2, 4], marker="o", label="a line")
    axes.bar([0, 1], [1, 2], hatch="//", edgecolor="white")
    axes.imshow([[0, 1], [1, 0]], extent=(0, 1, 0, 1))
    axes.legend()
    text = draw.svg(figure, DESCRIPTION)
    plt.close(figure)
    return text


def test_a_figure_is_smaller_and_keeps_its_label_its_title_and_its_marks(figure: str) -> None:
    small = pictures.smaller(figure)
    assert len(small) < 0.75 * len(figure)
    before, after = ElementTree.fromstring(figure), ElementTree.fromstring(small)
    assert after.attrib["aria-label"] == before.attrib["aria-label"] == DESCRIPTION
    assert after.attrib["viewBox"] == before.attrib["viewBox"]
    for tag in ("title", "path", "use", "clipPath", "pattern", "image"):
        name = f"{{{pictures.SVG}}}{tag}"
        assert len(list(after.iter(name))) == len(list(before.iter(name))) > 0, tag


def test_every_reference_of_a_smaller_figure_leads_somewhere(figure: str) -> None:
    small = pictures.smaller(figure)
    names = re.findall(r' id="([^"]+)"', small)
    references = re.findall(r'(?: href="|url\()#([^")]+)', small)
    assert len(names) == len(set(names))
    assert set(names) == set(references)


def test_a_file_is_made_smaller_once(figure: str, tmp_path: Path) -> None:
    file = tmp_path / "figure.svg"
    file.write_text(figure)
    pictures.shrink(tmp_path)
    assert file.read_text() == pictures.smaller(figure)
    before = file.stat().st_mtime_ns
    pictures.shrink(tmp_path)
    assert file.stat().st_mtime_ns == before


def test_the_size_is_in_pixels_of_the_page(figure: str) -> None:
    assert pictures.size('<svg role="img" width="72pt" height="36.3pt" viewBox="0 0 1 1">') == (96, 48)
    assert pictures.size(figure) == pictures.size(pictures.smaller(figure))
    assert pictures.size('<svg width="10" height="10">') is None
