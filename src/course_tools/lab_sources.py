"""A lab's text source and the notebooks made from it: the student's and the executed solution.

The source becomes a notebook in nbgrader's format; what `nbgrader generate_assignment` makes of it has the same cells
as the student's notebook here (`labs/nbgrader_config.py` gives nbgrader the same stub).
"""

import copy
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

import nbformat
from nbformat import NotebookNode

from course_tools import chapters, lab_cells, notebooks, user_folders
from distlab.labs import registry
from distlab.labs.lab import Lab
from distlab.runtime import processes, startup_notes
from distlab.runtime.errors import PlainError

if TYPE_CHECKING:
    from nbconvert.preprocessors import Preprocessor

_MARKS = ["### BEGIN SOLUTION", "### END SOLUTION"]
# What the student begins with, where the solution begins with the same name.
_STARTER = re.compile(rf"^( *)(\w+ = )(?!\w+ = ).*\n(?:\1[ )\]}}].*\n)*(?=\1{_MARKS[0]}\n\1\2)", re.MULTILINE)
# Whatever an author may have meant as a mark.
_LIKE_A_MARK = re.compile(r"(^|#)[\W_]*(begin|end)[\W_]*(solu|hidden)", re.IGNORECASE)
_ONLY_IN_THE_COURSE = ("solution.ipynb", "make check")
_SENTENCES = re.compile(r"(?<=[.?!])\s+(?=[A-Z`\[])")
_LINK_TO_COURSE = re.compile(r"\[([^\]]*)\]\(\.\./[^)]*\)")
CHECK = "check_"
_ANSWER = re.compile(r'(?ms)^# %% answer="(?P<name>\w+)"$(?P<text>.*?)(?=^# %%|\Z)')
# What it stands for: the cells for an answer and for its check in nbgrader's format.
_CELLS = Template("""\
# %% nbgrader={"grade": false, "grade_id": "$name", "locked": false, "solution": true, \
"schema_version": 3, "task": false}$text\
# %% nbgrader={"grade": true, "grade_id": "check_$name", "locked": true, "solution": false, \
"schema_version": 3, "task": false, "points": $points}
lab.check("$name")
### BEGIN HIDDEN TESTS
lab.points("$name")
### END HIDDEN TESTS

""")
TEXT, STUDENT, SOLUTION = "lab.py", "lab.ipynb", "solution.ipynb"
HANDED_OUT, NBGRADER, SOURCE, PREVIOUS = "students", "nbgrader", "source", "previous"
_PARTS = (HANDED_OUT, f"{NBGRADER}/{SOURCE}")
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


def chosen(labs: Path, only: str | None = None) -> list[Path]:
    """The sources `labs`/NN_topic/lab.py, in order; `only` is that of `chapters.chosen`."""
    folders = sorted(source.parent for source in labs.glob(f"[0-9][0-9]_*/{TEXT}"))
    return [folder / TEXT for folder in chapters.chosen(folders, only, "lab")]


def convert(source: Path, lab: Lab | None = None) -> NotebookNode:
    """The whole notebook of a source, solutions and hidden tests included; the same for the same text.

    A cell with `answer="name"` gets nbgrader's settings, and the cell of its check follows it.

    Raises BrokenSource unless it has, for each exercise of the lab, the cell for the answer and that of the check, and
    if a solution would be in the student's notebook because its marks are misspelt; nbgrader raises RuntimeError where
    they are misplaced.
    """
    lab = lab or registry.lab(source.parent.name)
    text = _ANSWER.sub(
        lambda cell: _CELLS.substitute(cell.groupdict(), points=lab[cell["name"]].points), source.read_text()
    )
    notebook = notebooks.convert_plainly(text, lab.number)
    _check(notebook, lab, f"{source.parent.name}/{source.name}")
    return notebook


def student(notebook: NotebookNode) -> NotebookNode:
    """The notebook for students: a stub for each solution, no hidden test, no output, the checks not to be changed."""
    from nbconvert.preprocessors import ClearOutputPreprocessor
    from nbgrader.preprocessors import ClearHiddenTests, ClearSolutions, LockCells

    stubs = ClearSolutions(code_stub={"python": lab_cells.STUB})
    return _preprocessed(notebook, stubs, ClearHiddenTests(), LockCells(), ClearOutputPreprocessor())


def solved(notebook: NotebookNode) -> NotebookNode:
    """The notebook with the solutions, not executed, without hidden tests, marks, and what students begin with."""
    from nbgrader.preprocessors import ClearHiddenTests

    solution = _preprocessed(notebook, ClearHiddenTests())
    for cell in solution.cells:
        if cell.cell_type == "code":
            lines = _STARTER.sub("", cell.source).split("\n")
            cell.source = "\n".join(line for line in lines if line.strip() not in _MARKS)
    return solution


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


def is_given(file: Path) -> bool:
    """Whether a file is handed out with its lab: no notebook, not the lab's text with the solutions, no judge."""
    is_other = file.suffix == ".ipynb" or file.name == TEXT or file.name.startswith(".")
    return file.is_file() and not is_other and not registry.is_of_judge(file)


def regenerate(source: Path) -> list[Path]:
    """Write `lab.ipynb` and the executed `solution.ipynb`; return their files.

    Raises BrokenSource, PlainError where one was edited itself, and what nbclient raises; both then stay as they are.
    """
    files = [source.with_name(STUDENT), source.with_name(SOLUTION)]
    for file in files:
        notebooks.require_not_edited(file, source)
    whole = convert(source)
    solution = notebooks.clean(notebooks.execute(solved(whole), source.parent))
    for file, notebook in zip(files, (student(whole), solution), strict=True):
        nbformat.validate(notebook)
        notebooks.note_cells(notebook)
        nbformat.write(notebook, file)
    return files


def _preprocessed(notebook: NotebookNode, *preprocessors: "Preprocessor") -> NotebookNode:
    """A copy of the notebook that has gone through the preprocessors, nbgrader's own."""
    copied = copy.deepcopy(notebook)
    for preprocessor in preprocessors:
        copied, _ = preprocessor.preprocess(copied, {})
    return copied


def _check(notebook: NotebookNode, lab: Lab, name: str) -> None:
    """Raise BrokenSource for cells that do not fit the exercises, and for marks that would stay in them."""
    settings = [cell.metadata.get("nbgrader", {}) for cell in notebook.cells]
    grade_ids = [own["grade_id"] for own in settings if own.get("grade_id")]
    expected = [grade_id for exercise in lab for grade_id in (exercise.name, CHECK + exercise.name)]
    if grade_ids != expected:
        raise BrokenSource(f"The cells of {name} have the grade_ids {grade_ids}, but its exercises ask for {expected}.")
    for cell in student(notebook).cells:
        if left := next(filter(_LIKE_A_MARK.search, cell.source.split("\n")), None):
            raise BrokenSource(f"{name}: students would see {left!r}; in an answer's cell the marks are {_MARKS}.")


def write_release(*, only: str | None = None) -> None:
    """Write the labs for students and nbgrader's course folder to `build/release`, and print where they are.

    Args:
        only: Some labs by number: "06" or "02,06".
    """
    processes.end_on_signals()
    folder = user_folders.announced("build", "the labs to hand out go") / "release"
    with startup_notes.hidden():
        paths = release(chosen(LABS, only), folder)
    print("\n".join(map(str, paths)))


def release(lab_sources: Sequence[Path], folder: Path) -> list[Path]:
    """Write `folder`/students/NN_topic for each lab, the same as a zip, and `folder`/nbgrader; return these three.

    In `students` and in nbgrader's `source` the folders of the course's labs are replaced; those of the release before
    are moved to `folder`/previous. All else stays: what an instructor has added there, nbgrader's database, what was
    handed in. Raises BrokenSource, and leaves everything as it was.
    """
    labs = lab_sources[0].parents[1]
    new = {source: without_course(convert(source)) for source in lab_sources}
    shutil.rmtree(folder / PREVIOUS, ignore_errors=True)
    for part in _PARTS:
        for place in filter(Path.exists, (folder / part / source.parent.name for source in chosen(labs))):
            (folder / PREVIOUS / part).mkdir(parents=True, exist_ok=True)
            place.rename(folder / PREVIOUS / part / place.name)
    for source, notebook in new.items():
        for part, handed_out in zip(_PARTS, (student(notebook), notebook), strict=True):
            place = folder / part / source.parent.name
            place.mkdir(parents=True)
            for file in filter(is_given, source.parent.glob("*")):
                shutil.copy(file, place)
            nbformat.write(handed_out, place / STUDENT)
    shutil.copy(labs / "nbgrader_config.py", folder / NBGRADER)
    shutil.make_archive(str(folder / "labs"), "zip", folder / HANDED_OUT)
    return [folder / HANDED_OUT, folder / "labs.zip", folder / NBGRADER]
