"""A student's notebook file: read without trust, and fitted into the lab's own steps."""

import json
import re
import stat
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from course_tools.grading import misplaced
from course_tools.grading.material import LARGEST_NOTEBOOK, LabStep, StepKind
from course_tools.grading.origin import Origin
from course_tools.lab_sources import CHECK

_NO_CELL = "no cell of an exercise is left"
NO_ANSWERS = f"{_NO_CELL}, as when a program has removed the cells' metadata"
_OPENED = re.compile(r"""labs\.open\(\s*["']?(\d{1,2})\b""", re.ASCII)
_MOST_CELLS = 500
_MOST_TEXT = 200_000


class Unreadable(Exception):
    """The file is not a notebook; the message is a sentence."""


@dataclass(frozen=True)
class SubmittedCell:
    """A cell: its text, its grade_id if it has one, whether it is marked as a cell for an answer, and if it is code."""

    text: str
    grade_id: str = ""
    is_answer: bool = False
    is_code: bool = True


@dataclass
class Fitted:
    """The steps to run, and what the instructor should know about the file.

    has_answers: False when no cell of an exercise is left, as in a file whose metadata was stripped, or another lab's.
    look_at: those of the notes for which the instructor should open the file.
    not_code: the exercises whose cell has become another kind of cell, such as Markdown.
    origin: where the notebook was written.
    """

    steps: list[LabStep]
    notes: list[str] = field(default_factory=list)
    look_at: list[str] = field(default_factory=list)
    has_answers: bool = True
    not_code: set[str] = field(default_factory=set)
    origin: Origin = field(default_factory=Origin)

    @property
    def is_untouched(self) -> bool:
        """Whether the student has changed no cell for an answer."""
        return all(step.untouched for step in self.steps if step.kind == StepKind.ANSWER)


def read(file: Path) -> list[SubmittedCell]:
    """The code cells of a notebook file (format 4), and others that are marked for an answer. Raises Unreadable."""
    try:
        about = file.lstat()
        if not stat.S_ISREG(about.st_mode):
            raise Unreadable("it is not a plain file")
        if about.st_size > LARGEST_NOTEBOOK:
            raise Unreadable(f"it is larger than {LARGEST_NOTEBOOK // 2**20} MiB; its outputs can be cleared")
        text = file.read_bytes()
        if not text.strip(b" \t\r\n\0"):
            raise Unreadable("it is empty, or holds nothing but zeros, as when a disk was full")
        if re.search(rb"^<<<<<<< ", text, re.MULTILINE):
            raise Unreadable("git has left a merge conflict in it")
        if text.lstrip()[:1] == b"<":
            raise Unreadable("it is a web page, not a notebook")
        content = json.loads(text)
        cells = [_cell(cell) for cell in content["cells"] if _may_count(cell)]
    except FileNotFoundError:
        raise Unreadable("it has vanished since it was found") from None
    except OSError as error:
        raise Unreadable(str(error.strerror)) from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, MemoryError):
        raise Unreadable("it is not a notebook of format 4") from None
    if len(cells) > _MOST_CELLS:
        raise Unreadable(f"it has more than {_MOST_CELLS} code cells")
    if any(len(cell.text) > _MOST_TEXT for cell in cells):
        raise Unreadable(f"one of its cells is longer than {_MOST_TEXT:,} characters")
    return cells


def fit(cells: Sequence[SubmittedCell], steps: Sequence[LabStep], stubs: dict[str, str]) -> Fitted:
    """The lab's steps with the student's answers instead of the lab's, and the student's own cells where they are.

    `stubs` are the texts of the untouched answer cells. If an exercise is answered in several cells (a copied cell),
    they run in order and the last one counts; untouched copies do not count. An answer in an added cell does not count
    where the exercise's own cell is untouched, but is noted. Given cells and checks are the lab's, whatever the
    student's file makes of them.
    """
    if problem := _without_answers(cells, stubs):
        return Fitted([_untouched(step, stubs) for step in steps], [problem], [problem], has_answers=False)
    answers: dict[str, list[str]] = {name: [] for name in stubs}
    places = {_squeezed(step.text): step.name for step in steps if step.kind == StepKind.GIVEN}
    added: dict[str | None, list[LabStep]] = {}
    place: str | None = None
    for number, cell in enumerate(_code(cells), start=1):
        if cell.is_answer and cell.grade_id in answers:
            answers[cell.grade_id].append(cell.text)
            place = cell.grade_id
            added.setdefault(place, []).extend(added.pop(CHECK + place, []))
        elif cell.grade_id.startswith(CHECK) or _only_checks(cell.text):
            if cell.grade_id == f"{CHECK}{place}":  # what follows it must not change the answer
                place = cell.grade_id
        elif (known := places.get(_squeezed(cell.text))) is not None:
            place = known
        else:
            added.setdefault(place, []).append(LabStep(StepKind.OWN, f"code cell {number}", cell.text))
    own = [step for steps_there in added.values() for step in steps_there]
    fitted = Fitted(list(added.get(None, [])), not_code=_not_code(cells))
    for step in steps:
        if step.kind == StepKind.ANSWER:
            if step.name in fitted.not_code and not answers[step.name]:
                _note_to_look_at(fitted, f"the cell of {step.name} is no code cell any more, so that it does not count")
            step = _answered(step, answers[step.name], stubs[step.name], own, fitted)
        fitted.steps.append(step)
        fitted.steps += added.get(CHECK + step.name if step.kind == StepKind.JUDGE else step.name, [])
    return fitted


def another_lab(cells: Sequence[SubmittedCell], exercises: Collection[str]) -> str:
    """A few words if most of the cells' grade_ids are not those of these exercises; else ""."""
    names = {cell.grade_id.removeprefix(CHECK) for cell in cells if cell.grade_id}
    if len(names.difference(exercises)) <= len(names.intersection(exercises)):
        return ""
    opened = next((match[1] for cell in cells if (match := _OPENED.search(cell.text))), "")
    return f"this is the notebook of lab {opened.zfill(2)}" if opened else "this is the notebook of another lab"


def _without_answers(cells: Sequence[SubmittedCell], stubs: dict[str, str]) -> str:
    """Why no cell of the notebook can be an answer to an exercise; "" if one can."""
    if problem := another_lab(cells, stubs):
        return problem
    if any(cell.is_answer and cell.grade_id in stubs for cell in cells):
        return ""
    return _NO_CELL if any(cell.grade_id for cell in cells) else NO_ANSWERS


def _untouched(step: LabStep, stubs: dict[str, str]) -> LabStep:
    return replace(step, text=stubs[step.name], untouched=True) if step.kind == StepKind.ANSWER else step


def as_written(cells: Sequence[SubmittedCell], exercises: Collection[str] = ()) -> Fitted:
    """The steps of a student's notebook as it is, each answer judged at its check.

    Those of the `exercises` whose check was deleted are judged before the next answer or check.
    """
    steps: list[LabStep] = []
    for number, cell in enumerate(_code(cells), start=1):
        if cell.is_answer:
            steps.append(LabStep(StepKind.ANSWER, cell.grade_id, cell.text))
        elif cell.grade_id.startswith(CHECK):
            steps.append(LabStep(StepKind.JUDGE, cell.grade_id.removeprefix(CHECK)))
        else:
            steps.append(LabStep(StepKind.OWN, f"code cell {number}", cell.text))
    judged = {step.name for step in steps if step.kind == StepKind.JUDGE}
    for exercise in exercises:
        if exercise not in judged:
            steps.insert(_end_of_answer(steps, exercise), LabStep(StepKind.JUDGE, exercise))
    has_answers = any(cell.is_answer for cell in _code(cells))
    return Fitted(steps, has_answers=has_answers, not_code=_not_code(cells))


def _end_of_answer(steps: Sequence[LabStep], exercise: str) -> int:
    """The place behind the last cell of an exercise and the student's own below it; the end if it has no cell."""
    places = [place for place, step in enumerate(steps) if (step.kind, step.name) == (StepKind.ANSWER, exercise)]
    if not places:
        return len(steps)
    below = range(places[-1] + 1, len(steps))
    return next((place for place in below if steps[place].kind != StepKind.OWN), len(steps))


def _code(cells: Sequence[SubmittedCell]) -> list[SubmittedCell]:
    return [cell for cell in cells if cell.is_code]


def _not_code(cells: Sequence[SubmittedCell]) -> set[str]:
    return {cell.grade_id for cell in cells if not cell.is_code}


def _note_to_look_at(fitted: Fitted, note: str) -> None:
    fitted.notes.append(note)
    fitted.look_at.append(note)


def _answered(step: LabStep, texts: list[str], stub: str, own: Sequence[LabStep], fitted: Fitted) -> LabStep:
    touched = [text for text in texts if _squeezed(text) != _squeezed(stub)]
    problem = f"{step.name} is untouched" if texts else f"the cell of {step.name} is missing"
    if not touched and (place := misplaced.where(own, step.name, stub)):
        _note_to_look_at(fitted, f"{problem}, but {place}: answers count in their own cells only")
    elif not texts:
        fitted.notes.append(problem)
    if len(touched) > 1:
        fitted.notes.append(f"{step.name} is answered in {len(touched)} cells, the last one counts")
    return replace(step, text="\n\n".join(touched) or stub, untouched=not touched)


def _may_count(cell: dict[str, Any]) -> bool:
    """Whether it is code, or was a cell for an answer: other cells are not looked at, whatever is in them."""
    if cell.get("cell_type") == "code":
        return True
    metadata = cell.get("metadata")
    settings = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    return isinstance(settings, dict) and settings.get("solution") is True


def _cell(cell: dict[str, Any]) -> SubmittedCell:
    source = cell["source"]
    text = source if isinstance(source, str) else "".join(source)
    settings = cell.get("metadata", {}).get("nbgrader", {})
    grade_id = settings.get("grade_id", "")
    name, is_answer = grade_id if isinstance(grade_id, str) else "", settings.get("solution") is True
    return SubmittedCell(text, name, is_answer, cell.get("cell_type") == "code")


def _squeezed(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def _only_checks(text: str) -> bool:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return all(re.fullmatch(r"""(lab\.)?check\(["']\w+["']\)|#.*""", line) for line in lines)
