"""Whether a notebook takes the parameters that a run gives it, and in time."""

import ast
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import nbformat


def parameters_without_effect(notebook: Path, parameters: Iterable[str]) -> str | None:
    """Which of the parameters this notebook would not take, in one sentence; None when it takes them all.

    papermill writes the values below the cell with the tag `parameters`, or without one above all cells.
    """
    cells = [cell for cell in nbformat.read(notebook, as_version=4).cells if "parameters" in tags(cell)]
    sources = [cell.source for cell in cells]
    idle = [name for name in parameters if not any(re.search(rf"^{name}\s*[:=]", text, re.M) for text in sources)]
    if not idle:
        return _used_too_early(sources, parameters)
    names = " and ".join(name.upper() for name in idle)
    if cells:
        return f"{names} would change nothing, since the cell with the tag `parameters` does not set {', '.join(idle)}"
    return f"{names} would change nothing, since no cell has the tag `parameters`: give it to the cell that sets them"


def _used_too_early(sources: Sequence[str], parameters: Iterable[str]) -> str | None:
    """That papermill's values come after a use of them, or before another cell that sets them."""
    try:
        statements = [statement for text in sources for statement in ast.parse(text).body]
    except SyntaxError:  # the notebook itself will say so
        return None
    names = " and ".join(name.upper() for name in parameters)
    if not names:
        return None
    if len(sources) > 1:
        return f"{names} would be set again, since {len(sources)} cells have the tag `parameters`: merge them"
    if all(isinstance(statement, ast.Assign | ast.AnnAssign) for statement in statements):
        return None
    return f"{names} would come too late, since the cell with the tag `parameters` does more than set values: split it"


def tags(cell: nbformat.NotebookNode) -> list[str]:
    """What a cell is marked with."""
    return list(cell.metadata.get("tags", []))
