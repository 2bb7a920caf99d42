"""The pages of notebooks: whole without a network, formulas and folded answers kept."""

import re
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_markdown_cell, new_notebook

from course_tools import html_pages

TEXT = """# Rings

![text](../figures/picture.svg) and `$HOME` and [next](01_next.ipynb), [lab](../labs/lab.ipynb).

<details><summary>Question</summary>

1. A [rank](../docs/glossary.md#rank) is $x^2$

The answer is $$\\frac{1}{p}$$

</details>

![kept](attachment:kept.png)"""
TERM = '<a id="rank"></a>\n**rank** ([00](../notebooks/00_rings.ipynb)): A number.'


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A course of one chapter, which is the working directory."""
    for name in ("notebooks", "figures", "docs"):
        (tmp_path / name).mkdir()
    (tmp_path / "figures" / "picture.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"/>')
    (tmp_path / "docs" / "glossary.md").write_text(TERM)
    cells = [new_markdown_cell(TEXT, attachments={"kept.png": {"image/png": "AAAA"}})]
    nbformat.write(new_notebook(cells=cells), tmp_path / "notebooks" / "00_rings.ipynb")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_a_page_shows_everything_without_a_network_and_links_to_pages_and_files(course: Path) -> None:
    file = course / "build" / "html" / "00_rings.html"
    notebook = nbformat.read(course / "notebooks" / "00_rings.ipynb", as_version=4)
    html_pages.write_page(notebook, file, course / "notebooks")
    html_pages.write_glossary(course / "notebooks", file.parent)
    page = file.read_text()
    assert "<title>Rings</title>" in page and "$HOME" in page
    assert not re.search(r'<script src|(?:src|<link[^>]*href)="http', page)
    pictures = re.findall(r'<img alt="(.*?)" src="(.*?)"', page)
    assert [(address[:22], text) for text, address in pictures] == [
        ("data:image/svg+xml;bas", "text"),
        ("data:image/png;base64,", "kept"),
    ]
    folded = page[page.index("<details>") : page.index("</details>")]
    assert "The answer is" in folded and "<msup><mi>x</mi><mn>2</mn></msup>" in folded and "<mfrac>" in folded
    links = re.findall(r'<a href="([^#"][^"]*)"', page)
    assert [links[0], links[2]] == ["01_next.html", "glossary.html#rank"]
    assert (file.parent / links[1]).resolve() == course / "labs" / "lab.ipynb"
    glossary = file.with_name("glossary.html").read_text()
    assert 'id="rank"' in glossary and 'href="00_rings.html"' in glossary
