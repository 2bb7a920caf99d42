"""The pages of notebooks: whole without a network, widgets as a note, formulas and folded answers kept."""

import re
from pathlib import Path

import nbformat
import pytest

from course_tools import __main__ as cli
from course_tools import html_pages, notebooks
from distlab.runtime import processes


def test_pages_show_widgets_as_a_note_and_images_inside(tmp_path: Path) -> None:
    notebook = nbformat.v4.new_notebook()
    (tmp_path / "picture.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"><title>a picture</title></svg>')
    notebook.cells.append(nbformat.v4.new_markdown_cell("![text](picture.svg) and `$HOME` and [next](01_next.ipynb)"))
    view = nbformat.v4.new_output(
        "display_data", data={notebooks.WIDGET_VIEW: {"model_id": "1"}, "text/plain": "interactive()"}
    )
    notebook.cells.append(nbformat.v4.new_code_cell("slider", outputs=[view]))
    nbformat.write(notebook, tmp_path / "00_page.ipynb")
    html_pages.write_page(tmp_path / "00_page.ipynb", tmp_path / "page.html", tmp_path)
    page = (tmp_path / "page.html").read_text()
    assert "there is a slider here" in page
    assert "data:image/svg+xml;base64" in page
    assert "$HOME" in page
    assert 'href="01_next.html"' in page
    assert "cdnjs" not in page and "unpkg" not in page and "<script src" not in page


def test_a_link_to_another_file_of_the_course_leads_there_from_the_page(tmp_path: Path) -> None:
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "labs").mkdir()
    (tmp_path / "labs" / "lab.ipynb").touch()
    cell = nbformat.v4.new_markdown_cell("[Lab](../labs/lab.ipynb)")
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), tmp_path / "notebooks" / "00_page.ipynb")
    page = tmp_path / "build" / "html" / "00_page.html"
    html_pages.write_page(tmp_path / "notebooks" / "00_page.ipynb", page, tmp_path / "notebooks")
    link = re.search(r'href="([^"]+lab\.ipynb)"', page.read_text())[1]
    assert (page.parent / link).resolve() == tmp_path / "labs" / "lab.ipynb"


def test_links_to_the_glossary_lead_to_its_page_and_back(tmp_path: Path) -> None:
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "glossary.md").write_text(
        '<a id="rank"></a>\n**rank** ([06](../notebooks/06_ring.ipynb)): A number.'
    )
    cell = nbformat.v4.new_markdown_cell("each [rank](../docs/glossary.md#rank)")
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), tmp_path / "notebooks" / "06_ring.ipynb")
    pages = tmp_path / "build" / "html"
    html_pages.write_page(tmp_path / "notebooks" / "06_ring.ipynb", pages / "06_ring.html", tmp_path / "notebooks")
    html_pages.write_glossary(tmp_path / "notebooks", pages)
    assert 'href="glossary.html#rank"' in (pages / "06_ring.html").read_text()
    text = (pages / "glossary.html").read_text()
    assert 'id="rank"' in text and 'href="06_ring.html"' in text


def test_folded_answers_and_formulas_keep_their_tags_on_the_page(tmp_path: Path) -> None:
    text = "<details><summary>Question</summary>\n\n1. One $x^2$\n\nThe answer is $$\\frac{1}{p}$$\n\n</details>"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(text)])
    nbformat.write(notebook, tmp_path / "00_page.ipynb")
    html_pages.write_page(tmp_path / "00_page.ipynb", tmp_path / "page.html", tmp_path)
    page = (tmp_path / "page.html").read_text()
    folded = page[page.index("<details>") : page.index("</details>")]
    assert "The answer is" in folded
    assert re.search(r"<msup><mi>x</mi><mn>2</mn></msup>", folded)
    assert re.search(r"<mfrac><mrow><mn>1</mn></mrow><mrow><mi>p</mi></mrow></mfrac>", folded)


def test_a_picture_that_was_not_pasted_along_is_named_and_the_page_is_written(tmp_path: Path) -> None:
    text = "My plan: ![pasted](attachment:image.png), ![kept](attachment:kept.png) and `attachment:code.png`."
    cell = nbformat.v4.new_markdown_cell(text, attachments={"kept.png": {"image/png": "AAAA"}})
    other = nbformat.v4.new_markdown_cell("![Skizze](attachment:für-mich.png)")
    notebook = tmp_path / "00.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[cell, other]), notebook)
    assert html_pages.write_page(notebook, tmp_path / "00.html", tmp_path) == [
        "The picture image.png is not in 00.ipynb: paste it again.",
        "The picture für-mich.png is not in 00.ipynb: paste it again.",
    ]
    page = (tmp_path / "00.html").read_text()
    assert 'alt="pasted"' in page and "data:image/png;base64,AAAA" in page


def test_a_damaged_notebook_is_named_and_the_other_pages_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    notebooks = tmp_path / "notebooks"
    notebooks.mkdir()
    (notebooks / "01_damaged.ipynb").write_text("{")
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# Whole")]), notebooks / "02_b.ipynb")
    monkeypatch.chdir(tmp_path)
    assert cli.main(["pages"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "build/html/02_b.html",
        "notebooks/01_damaged.ipynb cannot be read as a notebook; `git checkout notebooks/01_damaged.ipynb` restores "
        "it, without your changes.",
    ]


@pytest.fixture
def course_with_a_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a chapter and the copy that JupyterLab makes of it."""
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_markdown_cell("# Rings"), nbformat.v4.new_code_cell("print(1)")]
    )
    (tmp_path / "notebooks").mkdir()
    for name in ("01_rings", "01_rings-Copy1"):
        nbformat.write(notebook, tmp_path / "notebooks" / f"{name}.ipynb")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(processes, "end_on_signals", lambda: None)
    return tmp_path


@pytest.mark.slow
def test_a_copy_of_a_chapter_is_not_executed_and_named(
    course_with_a_copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["execute", "--only", "01", "--no-site"]) == 0
    said = capsys.readouterr().out
    assert "notebooks/01_rings-Copy1.ipynb is left out: it is no chapter of the course.\n" in said
    assert "The notebook ran without an error." in said
    assert [file.name for file in (course_with_a_copy / "build" / "executed").iterdir()] == ["01_rings.ipynb"]


def test_a_copy_of_a_chapter_is_no_page(course_with_a_copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["pages"]) == 0
    assert capsys.readouterr().out.splitlines() == ["build/html/01_rings.html"]
