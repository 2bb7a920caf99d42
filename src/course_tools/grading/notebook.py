"""A student's notebook file: read without trust, and fitted into the lab's own steps."""

import json
import re
import stat
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_tools.grading.material import LabStep, Material, StepKind
from course_tools.grading.submission import Submission
from course_tools.lab_sources import CHECK

_LARGEST, _MOST_CELLS = 50 * 2**20, 500
_NO_NOTEBOOK = "it is not a notebook of format 4"


class Unreadable(Exception):
    """The file is not a notebook; the message is a sentence."""


@dataclass(frozen=True)
class SubmittedCell:
    """A cell: its text, its grade_id if it has one, whether it is marked as a cell for an answer, and if it is code."""

    text: str
    grade_id: str = ""
    is_answer: bool = False
    is_code: bool = True


def document(file: Path) -> tuple[Any, str]:
    """What a notebook file holds, in UTF-8, UTF-16 or UTF-32, and a note if more text follows. Raises Unreadable."""
    try:
        about = file.lstat()
        if not stat.S_ISREG(about.st_mode):
            raise Unreadable("it is not a plain file")
        if about.st_size > _LARGEST:
            raise Unreadable(f"it is larger than {_LARGEST // 2**20} MiB; its outputs can be cleared")
        content = file.read_bytes()
        text = content.decode(json.detect_encoding(content), "surrogatepass").lstrip()
        notebook, end = json.JSONDecoder().raw_decode(text)
    except OSError as error:
        raise Unreadable(str(error.strerror)) from None
    except (ValueError, RecursionError, MemoryError):
        raise Unreadable(_NO_NOTEBOOK) from None
    follows = "more text follows after the notebook's end, as when a longer file was written over: it does not count"
    return notebook, follows if text[end:].strip() else ""


def read(file: Path) -> tuple[list[SubmittedCell], list[str]]:
    """The cells of a notebook file (format 4), and what to look at in it. Raises Unreadable."""
    notebook, note = document(file)
    try:
        cells = [_cell(cell) for cell in notebook["cells"]]
    except (KeyError, TypeError, AttributeError):
        raise Unreadable(_NO_NOTEBOOK) from None
    if len(cells) > _MOST_CELLS:
        raise Unreadable(f"it has more than {_MOST_CELLS} cells")
    return cells, [note] if note else []


def _cell(cell: Any) -> SubmittedCell:
    settings = cell.get("metadata", {}).get("nbgrader", {})
    grade_id, is_answer = str(settings.get("grade_id", "")), bool(settings.get("solution"))
    return SubmittedCell("".join(cell["source"]), grade_id, is_answer, cell.get("cell_type") == "code")


def fit(cells: Sequence[SubmittedCell], material: Material, submission: Submission) -> list[LabStep]:
    """The lab's steps with the student's answers instead of the lab's, and the student's own cells where they are.

    If an exercise is answered in several cells (a copied cell), they run in order and the last one counts; untouched
    copies do not count. Where its cell is missing nothing takes its place: what other cells define is judged. Given
    cells and checks are the lab's, whatever the student's file makes of them. The submission gets what is to be noted.
    """
    answers, own = _answers_and_others(cells, material)
    exercises = {each.name: each for each in submission.exercises}
    steps = own[""]
    for step in material.steps:
        if step.kind is not StepKind.ANSWER:
            steps.append(step)
        elif texts := answers[step.name]:
            stub = _squeezed(material.stubs[step.name])
            touched = [text for text in texts if _squeezed(text) != stub]
            steps.append(LabStep(StepKind.ANSWER, step.name, "\n\n".join(touched or texts[:1])))
            if len(touched) > 1:
                submission.notes.append(f"{step.name} is answered in {len(touched)} cells, the last one counts")
                exercises[step.name].copied = True
        else:
            submission.notes.append(f"the cell of {step.name} is missing: what other cells define was judged")
        steps += own[CHECK + step.name if step.kind is StepKind.JUDGE else step.name]
    if len({cell.grade_id.removeprefix(CHECK) for cell in cells if cell.grade_id} - set(answers)) > len(answers) / 2:
        submission.look_at.append("this is the notebook of another lab")
    no_code = sorted({cell.grade_id for cell in cells if cell.is_answer and not cell.is_code} & set(answers))
    submission.look_at += [f"the cell of {name} is no code cell any more" for name in no_code]
    return steps


def _answers_and_others(
    cells: Sequence[SubmittedCell], material: Material
) -> tuple[dict[str, list[str]], dict[str, list[LabStep]]]:
    """The answers by exercise, and the cells that the student has added, by the lab's cell that comes before."""
    answers: dict[str, list[str]] = {name: [] for name in material.stubs}
    own: dict[str, list[LabStep]] = defaultdict(list)
    given = {_squeezed(step.text): step.name for step in material.steps if step.kind is StepKind.GIVEN}
    place = ""
    for number, cell in enumerate((cell for cell in cells if cell.is_code), start=1):
        if cell.is_answer and cell.grade_id in answers:
            place = cell.grade_id
            answers[place].append(cell.text)
            own[place] += own.pop(CHECK + place, [])  # a copy below the check
        elif (checked := _checked(cell)) in answers:
            if place == checked or not answers[checked]:  # what follows it must not change the answer
                place = CHECK + checked
        elif (known := given.get(_squeezed(cell.text))) is not None:
            place = known
        elif not cell.grade_id.startswith(CHECK):
            own[place].append(LabStep(StepKind.OWN, f"code cell {number}", cell.text))
    return answers, own


def _checked(cell: SubmittedCell) -> str:
    """The exercise that a cell checks and does nothing else, by its grade_id or its text; "" for any other cell."""
    if cell.grade_id.startswith(CHECK):
        return cell.grade_id.removeprefix(CHECK)
    check = re.fullmatch(r"""lab\.check\(["'](\w+)["']\)""", cell.text.strip())
    return check[1] if check else ""


def _squeezed(text: str) -> str:
    return " ".join(text.split())
