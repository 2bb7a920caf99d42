"""Which of a student's files of a chapter counts: the course may have renamed the chapter, JupyterLab copied the file.

Of a chapter with a former and a new name the file with the student's work counts, in both the one with the new name.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import nbformat

from course_tools.lab_cells import answered, filled
from course_tools.lab_sources import SOLUTION, STUDENT
from course_tools.site.chapters import chapter_notebooks, is_chapter

COURSE = Path(__file__).parents[2]
"""The course's folder, which says how its chapters are called now, and whose labs say which exercises there are."""


@dataclass(frozen=True)
class CountingFile:
    """The file of a chapter that counts; how the chapter is called; lines on files of the student that do not count."""

    file: Path
    name: str
    notes: tuple[str, ...] = ()


def lab(labs: Path, number: str) -> CountingFile | None:
    """What counts of a lab, such as "06", in a folder of labs; None if there is none."""
    in_course = course_lab(number)

    def has_answers(file: Path) -> bool:
        return bool(in_course and answered(code_cells(file) or [], code_cells(in_course) or []))

    counting = _counting(_labs(labs, number), in_course, has_answers, lambda file: file.parent.name)
    if counting is None:
        return None
    if has_answers(counting.file):
        return counting
    nothing, lines = f"No answer is in {counting.file}, which alone counts, but in", list(counting.notes)
    others = sorted(set(counting.file.parent.glob("*.ipynb")) - {counting.file, counting.file.with_name(SOLUTION)})
    if names := ", ".join(ascii(file.name) for file in others if has_answers(file)):
        advice = f"copy the answers into {STUDENT}, or rename that notebook to {STUDENT}"
        lines.append(f"{nothing} {names} next to it: {advice}.")
    if in_course and in_course.absolute() != counting.file.absolute() and any(filled(code_cells(in_course) or [])):
        lines.append(f"{nothing} the course's own, {in_course}: `make lab` takes them into the copy.")
    return CountingFile(counting.file, counting.name, tuple(lines))


def notebook(notebooks: Path, number: str) -> CountingFile | None:
    """What counts of a chapter's notebook, such as "06", in a folder of notebooks; None if there is none."""
    files, current = (
        [file for file in chapter_notebooks(folder) if file.stem[:2] == number]
        for folder in (notebooks, COURSE / "notebooks")
    )
    return _counting(files, next(iter(current), None), has_run, lambda file: file.stem)


def course_lab(number: str) -> Path | None:
    """The course's own file of a lab; None if it has none."""
    return next(iter(_labs(COURSE / "labs", number)), None)


def has_run(notebook: Path) -> bool:
    """Whether a code cell of a notebook has run, as JupyterLab notes it."""
    return any("execution" in cell.metadata for cell in code_cells(notebook) or [])


def code_cells(file: Path) -> list[nbformat.NotebookNode] | None:
    """None of a file that cannot be read, none in the list of one that is not there."""
    try:
        return [cell for cell in nbformat.read(file, as_version=4).cells if cell.cell_type == "code"]
    except FileNotFoundError:
        return []
    except Exception:  # whatever is wrong with the file
        return None


def _labs(labs: Path, number: str) -> list[Path]:
    folders = sorted(folder for folder in labs.glob(f"{number}_*") if is_chapter(folder))
    return [folder / STUDENT for folder in folders if (folder / STUDENT).exists()]


def _counting(
    files: Sequence[Path], in_course: Path | None, has_work: Callable[[Path], bool], name: Callable[[Path], str]
) -> CountingFile | None:
    """What counts of the student's files of a chapter; `in_course` has the name that the course gives it now."""
    if not files:
        return None
    current = next((file for file in files if in_course and name(file) == name(in_course)), None)
    if current is None or len(files) == 1:
        return CountingFile(files[0], name(files[0]))
    in_order = sorted(files, key=lambda file: file != current)
    counting = next(filter(has_work, in_order), current)
    notes = []
    for file in in_order[1:]:
        counts = "does not count"
        if file == counting:
            counts = f"counts, as you have not begun with the course's new version, {current}"
        notes.append(f"{name(file)} is called {name(current)} now: what you have under the former name {counts}.")
    return CountingFile(counting, name(current), tuple(notes))
