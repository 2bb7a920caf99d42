"""A notebook that somebody has edited is not made again, which would drop the edits."""

from pathlib import Path

import nbformat
import pytest

from course_tools import hand_edits
from course_tools.hand_edits import EditedByHand

SOURCE = Path("notebooks/src/03_topic.py")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A notebook as the course makes it."""
    cells = [nbformat.v4.new_markdown_cell("text"), nbformat.v4.new_code_cell("1 + 1")]
    notebook = nbformat.v4.new_notebook(cells=cells)
    hand_edits.note_cells(notebook)
    nbformat.write(notebook, tmp_path / "03_topic.ipynb")
    return tmp_path / "03_topic.ipynb"


@pytest.mark.parametrize("edit", ["text", "cell"])
def test_an_edited_notebook_is_refused_with_its_source(file: Path, edit: str) -> None:
    notebook = nbformat.read(file, as_version=4)
    if edit == "text":
        notebook.cells[0].source += " and a note"
    else:
        notebook.cells.append(nbformat.v4.new_code_cell(""))
    nbformat.write(notebook, file)
    with pytest.raises(EditedByHand, match=r"03_topic\.ipynb was edited itself, .* in notebooks/src/03_topic\.py"):
        hand_edits.require_none(file, SOURCE)


def test_outputs_and_tags_are_no_edits(file: Path) -> None:
    notebook = nbformat.read(file, as_version=4)
    notebook.cells[1].outputs = [nbformat.v4.new_output("stream", text="2")]
    notebook.cells[1].metadata["tags"] = ["varies"]
    nbformat.write(notebook, file)
    hand_edits.require_none(file, SOURCE)


@pytest.mark.parametrize("content", [None, "<<<<<<< HEAD", "{}"])
def test_what_cannot_be_read_or_is_missing_can_be_made_again(file: Path, content: str | None) -> None:
    file.unlink()
    if content is not None:
        file.write_text(content)
    hand_edits.require_none(file, SOURCE)


def test_a_notebook_of_before_can_be_made_again(file: Path) -> None:
    notebook = nbformat.read(file, as_version=4)
    del notebook.metadata["distlab"]
    notebook.cells[0].source = "other text"
    nbformat.write(notebook, file)
    hand_edits.require_none(file, SOURCE)


def test_every_notebook_of_the_course_notes_its_cells(root: Path) -> None:
    files = [
        *root.glob("notebooks/[0-9][0-9]_*.ipynb"),
        *root.glob("labs/*/lab.ipynb"),
        *root.glob("labs/*/solution.ipynb"),
    ]
    assert len(files) > 40
    for file in files:
        assert "cells" in nbformat.read(file, as_version=4).metadata["distlab"], file
        hand_edits.require_none(file, SOURCE)
