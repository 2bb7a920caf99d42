"""`make check`: the exercises of a student's own notebook, run from the top in a process of their own."""

from collections.abc import Iterator
from pathlib import Path

from distlab.course import lab_sources
from distlab.grading import notebook
from distlab.grading.grade import grade
from distlab.grading.material import Material, files_beside
from distlab.grading.script import ANSWER, GIVEN, JUDGE, Step
from distlab.labs import registry
from distlab.labs.registry import shown
from distlab.runtime.errors import PlainError
from distlab.sandbox import SandboxedWork, Server
from distlab.sandbox.process import SandboxFailed


class CannotCheck(PlainError):
    """The notebook is not there or is no notebook; the message says so."""


def recheck(number: str, folder: Path) -> Iterator[str]:
    """A line for each exercise of `folder`/NN_topic/lab.ipynb, as its check would print it, and the sum of the points.

    The inputs are those of the checks. Raises registry.NoSuchLab and CannotCheck.
    """
    lab = registry.lab(number)
    file = folder / lab.name / lab_sources.STUDENT
    try:
        cells = notebook.read(file)
    except notebook.Unreadable as error:
        raise CannotCheck(f"{file} cannot be checked: {error}.") from None
    steps = _steps(cells)
    material = Material(lab, steps, {}, files_beside(file.parent))
    for weak in (False, True):
        try:
            with (
                Server(sorted(material.modules), weak) as server,
                SandboxedWork(server, material.limits, material.files) as work,
            ):
                report = grade(lab, notebook.Fitted(steps), work, seed=0)
            break
        except SandboxFailed as error:
            if weak:
                raise CannotCheck(f"A process for the check cannot be started: {error}.") from None
    for graded in report.exercises:
        line = shown(graded.exercise.name, graded.verdict)
        yield line if not graded.error or graded.error in line else f"{line}\n  {graded.error}"
    yield f"{report.score:g} of {lab.points:g} points"


def _steps(cells: list[notebook.Cell]) -> list[Step]:
    """The cells as they stand, each answer judged at its check."""
    steps = []
    for place, cell in enumerate(cells, start=1):
        if cell.is_answer:
            steps.append(Step(ANSWER, cell.grade_id, cell.text))
        elif cell.grade_id.startswith(lab_sources.CHECK):
            steps.append(Step(JUDGE, cell.grade_id.removeprefix(lab_sources.CHECK)))
        else:
            steps.append(Step(GIVEN, f"code cell {place}", cell.text))
    return steps
