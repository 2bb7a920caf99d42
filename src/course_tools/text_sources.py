"""What must hold for the text of a notebook or lab before it is converted."""

from collections.abc import Iterable
from pathlib import Path

from nbformat import NotebookNode

from distlab.runtime.errors import PlainError

_CONFLICT = ("<<<<<<< ", ">>>>>>> ")


class UnusableSource(PlainError):
    """A text source is not UTF-8, has an unresolved merge conflict or has no cell; the message says where."""


def require_text(source: Path) -> None:
    """Raise UnusableSource if the file is not UTF-8, or if git has left a merge conflict in it."""
    content = source.read_bytes()
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UnusableSource(
            f"{source}, line {line}: this is not UTF-8; save the file in UTF-8 and repeat the command."
        ) from None
    for number, line_text in enumerate(text.splitlines(), start=1):
        if line_text.startswith(_CONFLICT):
            raise UnusableSource(
                f"{source}, line {number}: `{line_text.strip()}` marks a merge conflict; resolve it and repeat the "
                "command."
            )


def require_cells(source: Path, cells: Iterable[NotebookNode]) -> None:
    """Raise UnusableSource unless a cell has code or text in it."""
    if not any(cell.cell_type in ("code", "markdown") and cell.source.strip() for cell in cells):
        raise UnusableSource(
            f"{source} has no cell with code or text, so no notebook is made from it; write its cells, or restore them "
            f"with `git checkout {source}`."
        )
