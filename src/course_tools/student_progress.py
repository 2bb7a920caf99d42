"""How far a student is: which chapters' cells have run, and which exercises are solved, by the saved notebooks.

JupyterLab notes in a cell when it ran (`make lab` sets it so); the course's own notebooks have no such notes. An
exercise is solved if the last check that was saved says so; one that is written and has no saved check is named.
"""

import json
import re
import sys
from pathlib import Path
from typing import NamedTuple

import nbformat

from course_tools import user_folders, working_copy
from course_tools.chapters import is_chapter, number_of
from course_tools.grading import notebook
from course_tools.lab_cells import answered, printed
from course_tools.lab_sources import STUDENT
from distlab.labs import registry
from distlab.runtime import tables

_AS_SAVED = (
    "Solved is what the check said when it last ran in the notebook. After a change run it again, or `make check LAB=` "
    "with the number of the lab."
)
_CHECK = re.compile(r'^lab\.check\("(\w+)"', re.MULTILINE)


class ChapterProgress(NamedTuple):
    """Of one chapter: its title, code cells that the student ran and all of them, exercises solved and all."""

    title: str
    cells_run: int
    cells: int
    solved: int
    exercises: int


def progress(copy: Path) -> tuple[list[ChapterProgress], list[str]]:
    """Each chapter and lab of a working copy, in order, and sentences on exercises that are written and not checked.

    One that cannot be read counts as untouched and has a sentence.
    """
    # A student's copies, and what `distlab lab --fresh` has replaced, have more in their names.
    files = (*copy.glob("notebooks/*.ipynb"), *(file.parent for file in copy.glob(f"labs/*/{STUDENT}")))
    notes: list[str] = []
    return [
        _of_chapter(copy, topic, notes) for topic in sorted({file.stem for file in files if is_chapter(file)})
    ], notes


def print_progress() -> int:
    """Print the table for the user's working copy, its sums, and what counts as solved; 2 if there is none."""
    copy = user_folders.user_folder(working_copy.NAME)
    if not copy.is_dir():
        print(f"There is no working copy {copy} yet; `make lab` makes it.", file=sys.stderr)
        return 2
    chapters, notes = progress(copy)
    together = ChapterProgress("together", *map(sum, zip((0, 0, 0, 0), *(each[1:] for each in chapters), strict=True)))
    rows = [(each.title, *map(_share, each[1::2], each[2::2])) for each in [*chapters, together]]
    table = tables.text(["Chapter", "Cells run", "Exercises solved"], rows, right=(1, 2))
    print("\n".join([table, *notes, *([_AS_SAVED] if together.solved else [])]))
    return 0


def _of_chapter(copy: Path, topic: str, notes: list[str]) -> ChapterProgress:
    notebook = [cell for cell in _code_cells(copy / "notebooks" / f"{topic}.ipynb", notes) if cell.source.strip()]
    lab = _code_cells(copy / "labs" / topic / STUDENT, notes)
    in_course = _code_cells(registry.LABS / topic / STUDENT, [])
    checks = {check[1]: printed(cell) for cell in lab if (check := _CHECK.search(cell.source))}
    # The course's, too: a student may have deleted a check.
    exercises = set(checks) | {check[1] for cell in in_course if (check := _CHECK.search(cell.source))}
    if unchecked := sum(not checks.get(exercise) for exercise in answered(lab, in_course)):
        number, few = number_of(topic), "1 exercise is" if unchecked == 1 else f"{unchecked} exercises are"
        notes.append(
            f"Lab {number}: {few} written, not checked: no output of the check is saved. `make check LAB={number}` "
            "checks them; to count here, run the notebook and save it."
        )
    return ChapterProgress(
        topic.replace("_", " "),
        sum("execution" in cell.metadata for cell in notebook),
        len(notebook),
        sum(registry.says_right(exercise, output) for exercise, output in checks.items()),
        len(exercises),
    )


def _code_cells(file: Path, notes: list[str]) -> list[nbformat.NotebookNode]:
    """None of a file that is not there, or that cannot be read, for which `notes` gets a sentence."""
    if not file.exists():
        return []
    try:
        content = notebook.document(file)
        return [cell for cell in nbformat.reads(json.dumps(content), as_version=4).cells if cell.cell_type == "code"]
    except Exception:  # whatever is wrong with the file
        number = number_of(file.parent.name if file.name == STUDENT else file.name)
        notes.append(f"{file} cannot be read as a notebook; `.venv/bin/distlab lab --fresh {number}` gives it back.")
        return []


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole}" if whole else "–"
