"""What a lab's notebook runs, in order: given cells, answers, checks."""

from collections.abc import Iterable
from dataclasses import dataclass

from nbformat import NotebookNode

from distlab.course.lab_sources import CHECK

GIVEN, ANSWER, JUDGE, OWN = "given", "answer", "judge", "own"


@dataclass(frozen=True)
class Step:
    """A cell: GIVEN by the lab, the ANSWER to an exercise, the moment to JUDGE it, or the student's OWN addition.

    `name` is the exercise's name, or what the feedback calls the cell; `untouched` says that nothing was answered.
    """

    kind: str
    name: str
    text: str = ""
    untouched: bool = False


def of_cells(cells: Iterable[NotebookNode]) -> list[Step]:
    """The steps of a lab's notebook, as its source or the student's file has them."""
    steps = []
    for number, cell in enumerate(cells):
        if cell.cell_type != "code":
            continue
        settings = cell.metadata.get("nbgrader", {})
        name = settings.get("grade_id", "")
        if settings.get("solution"):
            steps.append(Step(ANSWER, name, cell.source))
        elif settings.get("grade"):
            steps.append(Step(JUDGE, name.removeprefix(CHECK)))
        else:
            steps.append(Step(GIVEN, f"cell {number + 1}", cell.source))
    return steps
