"""How far a student is: which chapters' cells have run, and which exercises are solved, by the saved notebooks.

JupyterLab notes in a cell when it ran (`make lab` sets it so); the course's own notebooks have no such notes. An
exercise is solved if the last check that was saved says so.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import nbformat

from distlab.runtime import tables

_CHECK = re.compile(r'^lab\.check\("(\w+)"', re.MULTILINE)


@dataclass(frozen=True)
class ChapterProgress:
    """Of one chapter: its title, code cells that the student ran and all of them, exercises solved and all."""

    title: str
    cells_run: int
    cells: int
    solved: int
    exercises: int


def progress(copy: Path) -> list[ChapterProgress]:
    """Each chapter and lab of a working copy, in order; a notebook that cannot be read counts as untouched."""
    # What `make lab FRESH=` has replaced has a date between the name and its end.
    chapters = {file.stem for file in copy.glob("notebooks/[0-9][0-9]_*.ipynb") if "." not in file.stem}
    names = sorted(chapters | {*_labs(copy)})
    return [_of_chapter(copy, name) for name in names]


def show_progress() -> None:
    """Print the table for the working copy whose notebook calls this, as it was saved last."""
    print(table(progress(Path().absolute().parent)))


def table(chapters: list[ChapterProgress]) -> str:
    """The chapters as a table in text, and the sums."""
    rows = [
        (chapter.title, _share(chapter.cells_run, chapter.cells), _share(chapter.solved, chapter.exercises))
        for chapter in chapters
    ]
    cells = _share(sum(chapter.cells_run for chapter in chapters), sum(chapter.cells for chapter in chapters))
    solved = _share(sum(chapter.solved for chapter in chapters), sum(chapter.exercises for chapter in chapters))
    return tables.text(["Chapter", "Cells run", "Exercises solved"], [*rows, ("together", cells, solved)], right=(1, 2))


def _labs(copy: Path) -> dict[str, Path]:
    return {file.parent.name: file for file in copy.glob("labs/[0-9][0-9]_*/lab.ipynb")}


def _of_chapter(copy: Path, name: str) -> ChapterProgress:
    code = [cell for cell in _code_cells(copy / "notebooks" / f"{name}.ipynb") if cell.source.strip()]
    checks = {check[1]: cell for cell in _code_cells(_labs(copy).get(name)) if (check := _CHECK.search(cell.source))}
    solved = sum(f"{exercise}: ✔ right" in _printed(cell) for exercise, cell in checks.items())
    run = sum("execution" in cell.metadata for cell in code)
    number, _, topic = name.partition("_")
    return ChapterProgress(f"{number} {topic.replace('_', ' ')}", run, len(code), solved, len(checks))


def _code_cells(file: Path | None) -> list[nbformat.NotebookNode]:
    try:
        return [cell for cell in nbformat.read(file, as_version=4).cells if cell.cell_type == "code"] if file else []
    except Exception:  # whatever is wrong with the file, or it is not there
        return []


def _printed(cell: nbformat.NotebookNode) -> str:
    return "".join(output.get("text", "") for output in cell.outputs if output.output_type == "stream")


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole}" if whole else "–"
