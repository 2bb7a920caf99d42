"""A lab as it is graded, and a student's notebook file: read without trust, and fitted into the lab's own steps."""

import json
import re
import stat
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from importlib import resources
from pathlib import Path
from typing import Any

from course_tools import lab_sources
from course_tools.grading.submissions import Submission
from course_tools.lab_sources import CHECK
from course_tools.sandbox import PLAIN, TENSORFLOW, Kind, Setting
from distlab.labs import registry
from distlab.labs.lab import Lab

_LARGEST, _MOST_CELLS = 50 * 2**20, 500
_NO_NOTEBOOK = "it is not a notebook of format 4"
_IMPORTS_TENSORFLOW = re.compile(r"^\s*(import|from)\b.*\b(tensorflow|(tf_)?keras)\b", re.MULTILINE)
_IS_CHECK = re.compile(r"""\s*lab\.check\(["'](\w+)["']\)\s*""")


class Unreadable(Exception):
    """The file is not a notebook; the message is a sentence."""


class Role(StrEnum):
    """The ANSWER to an exercise, the moment to JUDGE it, or another cell, GIVEN by the lab or the student's OWN."""

    ANSWER = "answer"
    JUDGE = "judge"
    GIVEN = "given"
    OWN = "own"


@dataclass(frozen=True)
class Cell:
    """One cell of a notebook; `name` is the exercise's, or what the feedback calls the cell."""

    role: Role
    name: str
    text: str = ""
    is_code: bool = True


@dataclass(frozen=True)
class Material:
    """A lab as it is graded: the cells with code of its notebook for students, in order, and files for the jail."""

    lab: Lab
    steps: Sequence[Cell]
    files: dict[str, bytes]

    def setting(self, kind: Kind, steps: Sequence[Cell]) -> tuple[Lab, Setting]:
        """The lab with the seconds that these steps may take, and the jail in which they run.

        Who imports TensorFlow in a lab without it gets what those with it have.
        """
        lab, folder = self.lab, registry.JUDGES.get(self.lab.number)
        if not lab.tensorflow and any(_IMPORTS_TENSORFLOW.search(step.text) for step in steps):
            lab = lab.with_tensorflow()
        limits, modules = (TENSORFLOW, ["tensorflow"]) if lab.tensorflow else (PLAIN, [])
        hidden = [Path(str(resources.files(name))) for name in lab.solved_in]
        observers: list[str] = []
        seen: list[Path] = []
        if folder:
            observers = registry.observers(lab.number)
            seen = [folder / f"{name.partition('.')[2]}.py" for name in observers]
            hidden.append(folder / "judge.py")  # the registry in the jail finds the lab by its folder: an empty file
        return lab, Setting(limits, [*modules, *observers], self.files, seen, hidden, kind)


def load(source: Path, lab: Lab | None = None) -> Material:
    """The material of `labs/NN_topic/lab.py`. Raises lab_sources.BrokenSource."""
    lab = lab or registry.lab(source.parent.name)
    cells = enumerate(_cells(lab_sources.student(lab_sources.convert(source, lab))), start=1)
    steps = [
        cell if cell.name else Cell(Role.GIVEN, f"given cell {number}", cell.text)
        for number, cell in cells
        if cell.is_code
    ]
    given = "\n".join(step.text for step in steps if step.role is Role.GIVEN)
    # Files that the given cells do not name may hold an answer.
    files = [file for file in source.parent.glob("*") if lab_sources.is_given(file) and file.name in given]
    return Material(lab, steps, {file.name: file.read_bytes() for file in files})


def document(file: Path) -> Any:
    """What a notebook file holds, in UTF-8, UTF-16 or UTF-32. Raises Unreadable.

    What follows its end, as where a longer file was written over, does not count.
    """
    try:
        about = file.lstat()
        if not stat.S_ISREG(about.st_mode):
            raise Unreadable("it is not a plain file")
        if about.st_size > _LARGEST:
            raise Unreadable(f"it is larger than {_LARGEST // 2**20} MiB; its outputs can be cleared")
        content = file.read_bytes()
        text = content.decode(json.detect_encoding(content), "surrogatepass")
        return json.JSONDecoder().raw_decode(text.lstrip())[0]
    except OSError as error:
        raise Unreadable(str(error.strerror)) from None
    except (ValueError, RecursionError, MemoryError):
        raise Unreadable(_NO_NOTEBOOK) from None


def read(file: Path) -> list[Cell]:
    """The cells of a notebook file (format 4). Raises Unreadable."""
    notebook = document(file)
    try:
        cells = _cells(notebook)
    except (KeyError, TypeError, AttributeError):
        raise Unreadable(_NO_NOTEBOOK) from None
    if len(cells) > _MOST_CELLS:
        raise Unreadable(f"it has more than {_MOST_CELLS} cells")
    return cells


def _cells(notebook: Any) -> list[Cell]:
    """All cells, by their metadata; a check that has lost its own is known by its text."""
    cells = []
    for cell in notebook["cells"]:
        settings = cell.get("metadata", {}).get("nbgrader", {})
        text, grade_id = "".join(cell["source"]), str(settings.get("grade_id", ""))
        role, name = Role.OWN, ""
        if settings.get("solution"):
            role, name = Role.ANSWER, grade_id
        elif grade_id.startswith(CHECK):
            role, name = Role.JUDGE, grade_id.removeprefix(CHECK)
        elif check := _IS_CHECK.fullmatch(text):
            role, name = Role.JUDGE, check[1]
        cells.append(Cell(role, name, text, cell.get("cell_type") == "code"))
    return cells


def fit(cells: Sequence[Cell], material: Material, submission: Submission) -> list[Cell]:
    """The lab's steps with the student's answers, and the student's own cells after the lab's cell that they follow.

    If an exercise is answered in several cells (a copied cell), they run in order and the last one counts; untouched
    copies do not count. Where its cell is missing nothing takes its place: what other cells define is judged. Given
    cells and checks are the lab's, whatever the student's file makes of them. The submission gets what is to be noted.
    """
    given = {_squeezed(step.text): step.name for step in material.steps if step.role is Role.GIVEN}
    answers: dict[str, list[str]] = {step.name: [] for step in material.steps if step.role is Role.ANSWER}
    own: dict[tuple[Role, str], list[Cell]] = defaultdict(list)
    place = before = Role.GIVEN, ""
    for number, cell in enumerate((cell for cell in cells if cell.is_code), start=1):
        if cell.role is Role.ANSWER and cell.name in answers:
            place = Role.ANSWER, cell.name
            answers[cell.name].append(cell.text)
            own[place] += own.pop((Role.JUDGE, cell.name), [])  # a copy below the check
        elif cell.role is Role.JUDGE:
            if place == (Role.ANSWER, cell.name) or answers.get(cell.name) == []:
                place = Role.JUDGE, cell.name  # what follows it must not change the answer
        elif (known := given.get(_squeezed(cell.text))) is not None:
            place = Role.GIVEN, known
        else:
            own[place].append(Cell(Role.OWN, f"code cell {number}", cell.text))

    steps = own[before]
    for step in material.steps:
        if step.role is not Role.ANSWER:
            steps.append(step)
        elif texts := answers[step.name]:
            touched = [text for text in texts if _squeezed(text) != _squeezed(step.text)]
            steps.append(replace(step, text="\n\n".join(touched or texts[:1])))
            if len(touched) > 1:
                submission.notes.append(f"{step.name} is answered in {len(touched)} cells, the last one counts")
                submission.copied.append(step.name)
        else:
            submission.notes.append(f"the cell of {step.name} is missing: what other cells define was judged")
        steps += own[step.role, step.name]
    if len({cell.name for cell in cells if cell.name} - set(answers)) > len(answers) / 2:
        submission.look_at.append("this is the notebook of another lab")
    no_code = sorted({cell.name for cell in cells if cell.role is Role.ANSWER and not cell.is_code} & set(answers))
    submission.look_at += [f"the cell of {name} is no code cell any more" for name in no_code]
    return steps


def _squeezed(text: str) -> str:
    return " ".join(text.split())
