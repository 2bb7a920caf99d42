"""Edits of a notebook itself, which is made from a text source and would lose them when it is made again.

A notebook that is made notes in its metadata what its cells were; outputs and tags do not count.
"""

import hashlib
import json
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from distlab.runtime.errors import PlainError


class EditedByHand(PlainError):
    """A notebook has cells that its source has never had; the message says where they belong."""


def note_cells(notebook: NotebookNode) -> None:
    """Note in the metadata what the cells are now."""
    notebook.metadata["distlab"] = nbformat.from_dict({"cells": _digest(notebook)})


def require_none(file: Path, source: Path) -> None:
    """Raise EditedByHand if the notebook `file` has other cells than it was made with; `source` is its text.

    A file that is missing, that cannot be read, or that notes nothing can be made again.
    """
    if is_as_made(file) is False:
        raise EditedByHand(
            f"{file} was edited itself, and making it again would drop these edits: make them in {source}, then remove "
            f"{file.name} and repeat the command."
        )


def is_as_made(file: Path) -> bool | None:
    """Whether a notebook has the cells that it was made with; None if it cannot be read or notes nothing."""
    try:
        notebook = nbformat.read(file, as_version=4)
    except Exception:  # whatever is wrong with it, there is nothing to keep for people who edit notebooks
        return None
    made = notebook.metadata.get("distlab", {}).get("cells")
    return None if made is None else made == _digest(notebook)


def _digest(notebook: NotebookNode) -> str:
    cells = [[cell.cell_type, cell.source] for cell in notebook.cells]
    return hashlib.sha256(json.dumps(cells).encode()).hexdigest()
