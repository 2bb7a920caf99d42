"""What grading knows about a lab: its exercises, the steps of its notebook, the files next to it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib import resources
from pathlib import Path

from course_tools import lab_cells, lab_sources
from course_tools.sandbox import PLAIN, TENSORFLOW, Kind, Setting
from distlab.labs import registry
from distlab.labs.lab import Lab

_IMPORTS_TENSORFLOW = re.compile(r"^\s*(import|from)\b.*\b(tensorflow|(tf_)?keras)\b", re.MULTILINE)


class StepKind(StrEnum):
    """A cell GIVEN by the lab, the ANSWER to an exercise, the moment to JUDGE it, or the student's OWN addition."""

    GIVEN = "given"
    ANSWER = "answer"
    JUDGE = "judge"
    OWN = "own"


@dataclass(frozen=True)
class LabStep:
    """What a lab's notebook runs in one cell; `name` is the exercise's, or what the feedback calls the cell."""

    kind: StepKind
    name: str
    text: str = ""


@dataclass(frozen=True)
class Material:
    """A lab as it is graded: its steps, the untouched texts of its answers by exercise, files for the jail."""

    lab: Lab
    steps: Sequence[LabStep]
    stubs: dict[str, str]
    files: dict[str, bytes]

    def setting(self, kind: Kind, steps: Sequence[LabStep]) -> tuple[Lab, Setting]:
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
    notebook = lab_sources.convert(source, lab)
    stubs = {name: cell.source for name, cell in lab_cells.answer_cells(lab_sources.student(notebook).cells)}
    steps = []
    for number, cell in enumerate(notebook.cells, start=1):
        settings = cell.metadata.get("nbgrader", {})
        name = settings.get("grade_id", "")
        if cell.cell_type != "code":
            continue
        if settings.get("solution"):
            steps.append(LabStep(StepKind.ANSWER, name, cell.source))
        elif settings.get("grade"):
            steps.append(LabStep(StepKind.JUDGE, name.removeprefix(lab_sources.CHECK)))
        else:
            steps.append(LabStep(StepKind.GIVEN, f"given cell {number}", cell.source))
    given = "\n".join(step.text for step in steps if step.kind is StepKind.GIVEN)
    # Files that the given cells do not name may hold an answer.
    files = [file for file in source.parent.glob("*") if lab_sources.is_given(file) and file.name in given]
    return Material(lab, steps, stubs, {file.name: file.read_bytes() for file in files})
