"""A lab's text source and the notebooks made from it: the student's and the executed solution.

The source is a notebook in nbgrader's format; what `nbgrader generate_assignment` makes of it has the same cells as the
student's notebook here (`labs/nbgrader_config.py` gives nbgrader the same stub).
"""

import copy
import errno
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import nbformat
from nbformat import NotebookNode

from course_tools import git_files, hand_edits, lab_cells, notebooks, released_labs, user_folders
from course_tools.failed_cells import CellFailed
from distlab.labs import registry
from distlab.labs.lab import Exercise, Lab
from distlab.runtime import processes, startup_notes
from distlab.runtime.errors import PlainError
from distlab.runtime.lookups import look_up

if TYPE_CHECKING:
    from nbconvert.preprocessors import Preprocessor

_MARK = r"### (BEGIN|END) SOLUTION"
_SOLUTION = r"### BEGIN SOLUTION.*### END SOLUTION"
_LIKE_A_MARK = re.compile(r"(^|#)[\W_]*(begin|end)[\W_]*(solution|hidden[\W_]*test)", re.IGNORECASE)
_ONLY_IN_THE_COURSE = ("solution.ipynb", "make check")
_SENTENCES = re.compile(r"(?<=[.?!])\s+(?=[A-Z`\[])")
_LINK_TO_COURSE = re.compile(r"\[([^\]]*)\]\(\.\./[^)]*\)")
CHECK = "check_"
TEXT, STUDENT, SOLUTION = "lab.py", "lab.ipynb", "solution.ipynb"
_NOT_WRITTEN = f"no {STUDENT} or {SOLUTION} was written."
HANDED_OUT, NBGRADER, SOURCE = "students", "nbgrader", "source"
LABS = Path("labs")


class BrokenSource(PlainError):
    """A lab's source and its module do not fit together; the message says where."""


def write_labs(*, only: str | None = None) -> None:
    """Write the notebooks of each lab, and print their files.

    Args:
        only: Some labs by number: "06" or "02,06".
    """
    for source in chosen(LABS, only):
        for file in regenerate(source):
            print(file, flush=True)


def hand_out(*, only: str | None = None) -> None:
    """Write the labs for students and nbgrader's course folder to `build/release`, and print where they are.

    Args:
        only: Some labs by number: "06" or "02,06".
    """
    processes.end_on_signals()
    folder = user_folders.announced("build", "the labs to hand out go") / "release"
    left_out: list[Path] = []
    kept: list[Path] = []
    with startup_notes.hidden():
        paths = release(chosen(LABS, only), folder, left_out.append, kept.append)
    if not git_files.known(LABS):
        print("Git does not know this course, so all files next to the labs' notebooks are handed out, your own too.")
    for file in left_out:
        print(f"Not handed out: {file}, which git does not know. If students need it, run `git add {file}` first.")
    for place in kept:
        print(f"Labs that differ from what the last release wrote are kept in {place}; change tasks in their {TEXT}.")
    print("\n".join(map(str, paths)))


def chosen(labs: Path, only: str | None = None) -> list[Path]:
    """The sources `labs`/NN_topic/lab.py, in order; `only` names some by number, separated by commas ("06" or "02,06").

    Raises registry.NoSuchLab for one that is not there, or when there is none at all.
    """
    by_number = {source.parent.name[:2]: source for source in sorted(labs.glob(f"[0-9][0-9]_*/{TEXT}"))}
    if not by_number:
        raise registry.NoSuchLab(f"There is no lab in {labs.resolve()}; run this in the course's folder.")
    if not only:
        return list(by_number.values())
    numbers = {name.strip().partition("_")[0].zfill(2) for name in only.split(",") if name.strip()} or {only}
    return [look_up(by_number, number, "lab", registry.NoSuchLab) for number in sorted(numbers)]


def convert(source: Path, lab: Lab | None = None) -> NotebookNode:
    """The whole notebook of a source, solutions and hidden tests included; the same for the same text.

    Raises BrokenSource unless it has, for each exercise of the lab, the cell for the answer and that of the check, and
    if a solution would be in the student's notebook because its marks are misspelt or misplaced.
    """
    lab = lab or registry.lab(source.parent.name)
    notebook = notebooks.convert_plainly(source, lab.number)
    _check(notebook, lab, f"{source.parent.name}/{source.name}")
    return notebook


def student(notebook: NotebookNode) -> NotebookNode:
    """The notebook for students: a stub for each solution, no hidden test, no output, the checks not to be changed."""
    from nbconvert.preprocessors import ClearOutputPreprocessor
    from nbgrader.preprocessors import ClearHiddenTests, ClearSolutions, LockCells

    stubs = ClearSolutions(code_stub={"python": lab_cells.STUB})
    return _preprocessed(notebook, stubs, ClearHiddenTests(), LockCells(), ClearOutputPreprocessor())


def solved(notebook: NotebookNode) -> NotebookNode:
    """The notebook with the solutions, not executed, without hidden tests and marks."""
    from nbgrader.preprocessors import ClearHiddenTests

    solution = _preprocessed(notebook, ClearHiddenTests())
    for cell in solution.cells:
        if cell.cell_type == "code":
            cell.source = "\n".join(line for line in cell.source.split("\n") if not re.search(_MARK, line))
    return solution


def regenerate(source: Path) -> list[Path]:
    """Write `lab.ipynb` and the executed `solution.ipynb`, in which every check says "right"; return their files.

    Raises BrokenSource, text_sources.UnusableSource and hand_edits.EditedByHand; both files then stay as they are.
    """
    folder = source.parent
    for name in (STUDENT, SOLUTION):
        hand_edits.require_none(folder / name, source)
    lab = registry.lab(source.parent.name)
    whole = convert(source, lab)
    if not os.access(folder, os.W_OK):  # before the solution runs for a minute
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder / STUDENT))
    try:
        solution = notebooks.clean(notebooks.execute(solved(whole), folder))
    except CellFailed as error:
        raise BrokenSource(f"{source}: {error}; {_NOT_WRITTEN}") from error
    _require_right(solution, lab, source)
    return [_written(student(whole), folder / STUDENT), _written(solution, folder / SOLUTION)]


def without_course(notebook: NotebookNode) -> NotebookNode:
    """A copy for a folder of its own: without sentences and links about what is only in the course's folder."""
    copied = copy.deepcopy(notebook)
    for cell in copied.cells:
        if cell.cell_type == "markdown":
            cell.source = "\n\n".join(map(_without_course, cell.source.split("\n\n")))
    return copied


def _without_course(paragraph: str) -> str:
    if any(mark in paragraph for mark in _ONLY_IN_THE_COURSE):
        sentences = _SENTENCES.split(paragraph)
        paragraph = " ".join(text for text in sentences if not any(mark in text for mark in _ONLY_IN_THE_COURSE))
    return _LINK_TO_COURSE.sub(r"\1", paragraph)


def release(
    lab_sources: Sequence[Path],
    folder: Path,
    on_left_out: Callable[[Path], object] = lambda file: None,
    on_kept: Callable[[Path], object] = lambda kept: None,
) -> list[Path]:
    """Write `folder`/students/NN_topic for each lab, the same as a zip, and `folder`/nbgrader for nbgrader.

    In `students` and in nbgrader's `source` the folders of the course's labs are replaced, when all are written. All
    else stays: what an instructor has added there, nbgrader's database, what was handed in. Labs that were changed
    since the last release are kept in a folder beside these, which `on_kept` gets. Raises BrokenSource.

    A lab's programs and data go with it, but in a repository only those that git knows; `on_left_out` gets the others.
    """
    programs = {source: _programs(source, on_left_out) for source in lab_sources}
    released = {source: without_course(convert(source)) for source in lab_sources}
    parts = (HANDED_OUT, f"{NBGRADER}/{SOURCE}")
    of_course = [source.parent.name for source in chosen(lab_sources[0].parents[1])]
    with released_labs.replacing(folder, parts, of_course, on_kept) as new:
        for source, notebook in released.items():
            for part, handed_out in zip(parts, (student(notebook), notebook), strict=True):
                place = new / part / source.parent.name
                place.mkdir()
                for file in programs[source]:
                    shutil.copy(file, place)
                nbformat.write(handed_out, place / STUDENT)
    shutil.copy(lab_sources[0].parents[1] / "nbgrader_config.py", folder / NBGRADER)
    with tempfile.TemporaryDirectory(prefix=".unfinished-", dir=folder) as unfinished:
        packed = Path(shutil.make_archive(str(Path(unfinished) / "labs"), "zip", folder / HANDED_OUT))
        packed = packed.replace(folder / packed.name)
    return [folder / HANDED_OUT, packed, folder / NBGRADER]


def is_given(file: Path) -> bool:
    """Whether a file is handed out with its lab: no notebook, not the lab's text with the solutions, no judge."""
    return file.is_file() and file.suffix != ".ipynb" and file.name != TEXT and not registry.is_of_judge(file)


def _programs(source: Path, on_left_out: Callable[[Path], object]) -> list[Path]:
    """The files that are handed out with a lab: an instructor may keep notes beside them."""
    files = [file for file in sorted(source.parent.glob("*")) if is_given(file)]
    if not (known := git_files.known(source.parents[1])):
        return files
    for file in files:
        if file not in known and not file.name.startswith("."):
            on_left_out(file)
    return [file for file in files if file in known]


def _require_right(solution: NotebookNode, lab: Lab, source: Path) -> None:
    """Raise BrokenSource unless each check of the executed solution has said that the answer is right."""
    checks = {cell.metadata.get("nbgrader", {}).get("grade_id"): cell for cell in solution.cells}
    for exercise in lab:
        said = lab_cells.printed(checks[CHECK + exercise.name])
        if not registry.says_right(exercise.name, said):
            lines = [line.strip() for line in said.splitlines() if line.strip()]
            verdict = next((line for line in lines if line.startswith(f"{exercise.name}:")), " ".join(lines))
            raise BrokenSource(
                f"{source}, exercise {exercise.name}: with its solution the check says "
                f"{repr(verdict) if verdict else 'nothing'}; {_NOT_WRITTEN}"
            )


def _written(notebook: NotebookNode, file: Path) -> Path:
    nbformat.validate(notebook)
    hand_edits.note_cells(notebook)
    nbformat.write(notebook, file)
    return file


def _preprocessed(notebook: NotebookNode, *preprocessors: "Preprocessor") -> NotebookNode:
    """A copy of the notebook that has gone through the preprocessors, nbgrader's own."""
    copied = copy.deepcopy(notebook)
    for preprocessor in preprocessors:
        copied, _ = preprocessor.preprocess(copied, {})
    return copied


def _check(notebook: NotebookNode, lab: Lab, name: str) -> None:
    cells = [cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("grade_id")]
    grade_ids = [cell.metadata.nbgrader["grade_id"] for cell in cells]
    expected = [grade_id for exercise in lab for grade_id in (exercise.name, CHECK + exercise.name)]
    unknown = sorted(set(grade_ids) - set(expected))
    if unknown:
        raise BrokenSource(f"{name} has cells of {', '.join(unknown)}, but its judge has no exercise for them.")
    if grade_ids != expected:
        raise BrokenSource(f"The cells of {name} have the grade_ids {grade_ids}, but its exercises ask for {expected}.")
    for exercise, answer, check in zip(lab, cells[::2], cells[1::2], strict=True):
        if problem := _problem(exercise, answer, check):
            raise BrokenSource(f"{name}, exercise {exercise.name}: {problem}.")
    checks = cells[1::2]  # whose marks are right
    for cell in notebook.cells:
        if cell not in checks and (problem := _problem_with_marks(cell)):
            line = next((line for line in cell.source.split("\n") if line.strip()), "")
            raise BrokenSource(f"{name}, the cell that begins with {line!r}: {problem}.")


def _problem(exercise: Exercise, answer: NotebookNode, check: NotebookNode) -> str | None:
    """What is wrong with the two cells of an exercise."""
    kinds = (answer.metadata.nbgrader["solution"], answer.metadata.nbgrader["grade"])
    if kinds != (True, False) or not re.search(_SOLUTION, answer.source, re.DOTALL):
        return (
            "the answer's cell needs solution true, grade false and a part from ### BEGIN SOLUTION to ### END SOLUTION"
        )
    settings = check.metadata.nbgrader
    if (settings["solution"], settings["grade"], settings["locked"]) != (False, True, True):
        return "the check's cell needs solution false, grade true and locked true"
    if settings.get("points") != exercise.points:
        return f"the check's cell gives {settings.get('points')} points, but the exercise {exercise.points}"
    call, points = f'lab.check("{exercise.name}")', f'lab.points("{exercise.name}")'
    if check.source.split() != f"{call} ### BEGIN HIDDEN TESTS {points} ### END HIDDEN TESTS".split():
        return f"the check's cell must contain {call}, and {points} between ### BEGIN and END HIDDEN TESTS"
    return None


def _problem_with_marks(cell: NotebookNode) -> str | None:
    """Why lines between marks may stay in the student's notebook, such as a mark in small letters."""
    is_answer, is_open = cell.metadata.get("nbgrader", {}).get("solution"), False
    for line in cell.source.split("\n"):
        mark = re.search(_MARK, line)
        if mark and is_answer and (mark[1] == "BEGIN") != is_open:
            is_open = not is_open
        elif mark:
            return f"{mark[0]} is out of place: in an answer's cell ### BEGIN SOLUTION and ### END SOLUTION take turns"
        elif _LIKE_A_MARK.search(line) or (cell.cell_type == "code" and line.lstrip().startswith("###")):
            return f"{line.strip()!r} is no mark: write ### BEGIN SOLUTION or ### END SOLUTION, in these capitals"
    return "### BEGIN SOLUTION has no ### END SOLUTION" if is_open else None
