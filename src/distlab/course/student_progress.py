"""How far a student is: which chapters' cells have run, and which exercises are solved, by the saved notebooks.

JupyterLab notes in a cell when it ran (`make lab` sets it so); the course's own notebooks have no such notes. An
exercise is solved if the last check that was saved says so; one that is written and has no saved check is named.
"""

import re
from dataclasses import dataclass, replace
from pathlib import Path

import nbformat

from distlab.course.lab_cells import answer_cells, printed
from distlab.labs.registry import says_right
from distlab.runtime import tables
from distlab.site.chapters import chapter_notebooks

COURSE = Path(__file__).parents[3]
"""The course's folder, which says how its chapters are called now, and whose labs say which exercises there are, also
those whose check a student has deleted."""

_AS_SAVED = (
    "Solved is what the check said when it last ran in the notebook. After a change run it again, or `make check LAB=` "
    "with the number of the lab."
)
_CHECK = re.compile(r'^lab\.check\("(\w+)"', re.MULTILINE)


@dataclass(frozen=True)
class ChapterProgress:
    """Of one chapter: its title, code cells that the student ran and all of them, exercises solved and all.

    notes: what to say of files that cannot be read, and of those with a former name.
    unchecked: exercises that are written, and whose check has no saved output.
    """

    title: str
    cells_run: int
    cells: int
    solved: int
    exercises: int
    notes: tuple[str, ...] = ()
    unchecked: int = 0


def progress(copy: Path) -> list[ChapterProgress]:
    """Each chapter and lab of a working copy, in order; one that cannot be read counts as untouched and is named.

    So is what a student keeps of a chapter under the name that it had before the course renamed it; it does not count.
    """
    names, now = _names(copy), {name[:2]: name for name in _names(COURSE)}
    former = {name for name in names if now.get(name[:2], name) in names - {name}}
    chapters = {name: _of_chapter(copy, name) for name in sorted(names - former)}
    for name in sorted(former):
        chapter = chapters[now[name[:2]]]
        line = f"{name} is called {now[name[:2]]} now: what you have under the former name does not count."
        chapters[now[name[:2]]] = replace(chapter, notes=(*chapter.notes, line))
    return list(chapters.values())


def _names(folder: Path) -> set[str]:
    """Of the chapters and labs of a working copy or of the course."""
    # A student's copies, and what `make lab FRESH=` has replaced, have more in their names.
    chapters = {file.stem for file in chapter_notebooks(folder / "notebooks")}
    return chapters | {file.parent.name for file in folder.glob("labs/[0-9][0-9]_*/lab.ipynb")}


def show_progress() -> None:
    """Print the table for the working copy whose notebook calls this, as it was saved last."""
    copy = Path().absolute().parent
    chapters = progress(copy)
    print(
        table(chapters) if chapters else f"{copy} holds no notebooks of the course: run this in one of its notebooks."
    )


def table(chapters: list[ChapterProgress]) -> str:
    """The chapters as a table in text, the sums, what counts as solved; lines for what is unchecked, and notes."""
    rows = [
        (chapter.title, _share(chapter.cells_run, chapter.cells), _share(chapter.solved, chapter.exercises))
        for chapter in chapters
    ]
    cells = _share(sum(chapter.cells_run for chapter in chapters), sum(chapter.cells for chapter in chapters))
    solved = _share(sum(chapter.solved for chapter in chapters), sum(chapter.exercises for chapter in chapters))
    columns = ["Chapter", "Cells run", "Exercises solved"]
    text = tables.text(columns, [*rows, ("together", cells, solved)], right=(1, 2))
    lines = [_unchecked(chapter) for chapter in chapters if chapter.unchecked]
    if any(chapter.solved for chapter in chapters):
        lines.append(_AS_SAVED)
    return "\n".join([text, *lines, *(line for chapter in chapters for line in chapter.notes)])


def _unchecked(chapter: ChapterProgress) -> str:
    number, count = chapter.title[:2], chapter.unchecked
    exercises = "1 exercise is" if count == 1 else f"{count} exercises are"
    return (
        f"Lab {number}: {exercises} written, not checked: no output of the check is saved. `make check LAB={number}` "
        "checks them; to count here, run the notebook and save it."
    )


def _of_chapter(copy: Path, name: str) -> ChapterProgress:
    damaged: list[str] = []
    notebook, lab = copy / "notebooks" / f"{name}.ipynb", copy / "labs" / name / "lab.ipynb"
    code = [cell for cell in _code_cells(notebook, damaged) if cell.source.strip()]
    cells, own_cells = _code_cells(lab, damaged), _code_cells(COURSE / "labs" / name / "lab.ipynb", [])
    checks = {check[1]: printed(cell) for cell in cells if (check := _CHECK.search(cell.source))}
    solved = sum(says_right(exercise, output) for exercise, output in checks.items())
    exercises = set(checks) | {check[1] for cell in own_cells if (check := _CHECK.search(cell.source))}
    stubs = {exercise: cell.source.split() for exercise, cell in answer_cells(own_cells)}
    unchecked = {
        exercise
        for exercise, cell in answer_cells(cells)
        if exercise in stubs and cell.source.split() != stubs[exercise] and not checks.get(exercise)
    }
    run = sum("execution" in cell.metadata for cell in code)
    number, _, topic = name.partition("_")
    title = f"{number} {topic.replace('_', ' ')}"
    return ChapterProgress(title, run, len(code), solved, len(exercises), tuple(damaged), len(unchecked))


def _code_cells(file: Path, damaged: list[str]) -> list[nbformat.NotebookNode]:
    """None of a file that is not there, or that cannot be read, for which `damaged` gets a sentence."""
    try:
        return [cell for cell in nbformat.read(file, as_version=4).cells if cell.cell_type == "code"]
    except FileNotFoundError:
        return []
    except Exception:  # whatever is wrong with the file
        number = (file.stem if file.parent.name == "notebooks" else file.parent.name)[:2]
        damaged.append(f"{file} cannot be read as a notebook; `make lab FRESH={number}` gives it back.")
        return []


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole}" if whole else "–"
