"""The cells of a lab's notebook, a student's too: those for answers, and what a cell has printed."""

from collections.abc import Iterable, Iterator

from nbformat import NotebookNode

STUB = "# Write your answer here.\n..."


def answer_cells(cells: Iterable[NotebookNode]) -> Iterator[tuple[str, NotebookNode]]:
    """Those for answers, in order, each with its exercise's name."""
    for cell in cells:
        settings = cell.metadata.get("nbgrader")
        if cell.cell_type != "code" or not isinstance(settings, dict) or not settings.get("solution"):
            continue
        if isinstance(settings.get("grade_id"), str):
            yield settings["grade_id"], cell


def answered(cells: Iterable[NotebookNode], own_cells: Iterable[NotebookNode]) -> set[str]:
    """Those of the course's exercises whose cell for the answer has no stub any more."""
    own, stub = {exercise for exercise, _ in answer_cells(own_cells)}, " ".join(STUB.split())
    return {name for name, cell in answer_cells(cells) if name in own and stub not in " ".join(cell.source.split())}


def printed(cell: NotebookNode) -> str:
    """What a code cell has printed or shown as text, by its saved outputs."""
    return "".join(output.get("text", output.get("data", {}).get("text/plain", "")) for output in cell.outputs)
