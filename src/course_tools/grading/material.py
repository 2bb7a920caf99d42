"""What grading knows about a lab: its exercises, the steps of its notebook, the files next to it."""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from course_tools import lab_cells, lab_sources
from course_tools.sandbox import PLAIN, TENSORFLOW, Kind, Setting, jail
from distlab.labs import registry
from distlab.labs.lab import Lab

_LARGEST_FILE = 2 * 2**20
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
        """The jail in which these steps run, and the lab with the seconds that they may take.

        Who imports TensorFlow in a lab without it gets what those with it have.
        """
        lab, imported = self.lab, {name for step in self.steps for name in _imported(step)}
        if not lab.tensorflow and any(_IMPORTS_TENSORFLOW.search(step.text) for step in steps):
            lab = lab.with_tensorflow()
        modules = {*imported, *jail.modules_of_lab(lab.number), *(["tensorflow"] if lab.tensorflow else [])}
        if not lab.tensorflow:
            modules = {name for name in modules if name.partition(".")[0] not in ("tensorflow", "keras", "tf_keras")}
        seen = [file for name in jail.modules_of_lab(lab.number) for file in jail.files_of(name)[:1]]
        hidden = [file for name in lab.solved_in for file in jail.files_of(name)]
        limits = TENSORFLOW if lab.tensorflow else PLAIN
        return lab, Setting(limits, sorted(modules), self.files, seen, hidden, kind)


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
            steps.append(LabStep(StepKind.GIVEN, f"cell {number}", cell.source))
    named = {name for step in steps for name in _named_in(step)}
    files = [file for file in source.parent.glob("*") if lab_sources.is_given(file) and file.name in named]
    contents = {file.name: file.read_bytes() for file in files if file.stat().st_size <= _LARGEST_FILE}
    return Material(lab, steps, stubs, contents)


def _nodes(step: LabStep) -> list[ast.AST]:
    """The syntax of a given cell; none of IPython's own."""
    try:
        return list(ast.walk(ast.parse(step.text))) if step.kind is StepKind.GIVEN else []
    except SyntaxError:
        return []


def _named_in(step: LabStep) -> Iterator[str]:
    """The files that a given cell may need: the texts in it, and what it imports. Others may hold an answer."""
    yield from (f"{name}.py" for name in _imported(step))
    yield from (node.value for node in _nodes(step) if isinstance(node, ast.Constant) and isinstance(node.value, str))


def _imported(step: LabStep) -> Iterator[str]:
    for node in _nodes(step):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (node.module, *(f"{node.module}.{name.name}" for name in node.names))
