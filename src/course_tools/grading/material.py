"""What grading knows about a lab: its exercises, the steps of its notebook, the files next to it."""

import ast
import importlib.util
import re
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from nbformat import NotebookNode

from course_tools import lab_cells, lab_sources
from course_tools.sandbox import PLAIN, TENSORFLOW, SandboxLimits
from distlab.labs import registry
from distlab.labs.lab import Lab

_LARGEST_FILE = 2 * 2**20
LARGEST_NOTEBOOK = 50 * 2**20
# In a line of a notebook, whose lines are texts in JSON.
_IMPORTS_TENSORFLOW = re.compile(rb"""\b(?:import|from)\b[^\\"\n]*\b(?:tensorflow|(?:tf_)?keras)\b""")


class StepKind(StrEnum):
    """A cell GIVEN by the lab, the ANSWER to an exercise, the moment to JUDGE it, or the student's OWN addition."""

    GIVEN = "given"
    ANSWER = "answer"
    JUDGE = "judge"
    OWN = "own"


@dataclass(frozen=True)
class LabStep:
    """What a lab's notebook runs in one cell.

    `name` is the exercise's name, or what the feedback calls the cell; `untouched` says that nothing was answered.
    """

    kind: StepKind
    name: str
    text: str = ""
    untouched: bool = False

    @property
    def title(self) -> str:
        """The name at the beginning of a sentence."""
        return self.name[:1].upper() + self.name[1:]


@dataclass(frozen=True)
class Material:
    """A lab as it is graded: its steps, the untouched texts of its answers by exercise, files for the sandbox.

    Of the lab's files only those that given cells name: others may hold an answer.
    """

    lab: Lab
    steps: Sequence[LabStep]
    stubs: dict[str, str]
    files: dict[str, bytes]

    def for_notebook(self, file: Path | None) -> "Material":
        """The same, but with TensorFlow if a cell of that notebook imports it, in a lab that does without.

        Each of the student's processes would import it again otherwise, and that would use up the time for the lab.
        """
        if self.lab.tensorflow or file is None or not _imports_tensorflow(file):
            return self
        return replace(self, lab=self.lab.with_tensorflow())

    @property
    def limits(self) -> SandboxLimits:
        """What a student's process may use."""
        return TENSORFLOW if self.lab.tensorflow else PLAIN

    @property
    def hidden(self) -> list[str]:
        """The files and folders of the modules that have what the lab asks for."""
        return [str(path) for name in self.lab.solved_in for path in _files_of(name)]

    @property
    def modules(self) -> set[str]:
        """The modules that given cells import, and those that observe answers; TensorFlow only if the lab needs it."""
        names = set(registry.observers(self.lab.number)) if self.lab.number in registry.MODULES else set()
        names |= {"tensorflow"} if self.lab.tensorflow else set()
        for step in self.steps:
            if step.kind == StepKind.GIVEN:
                names |= _imported(step.text)
        return {name for name in names if self.lab.tensorflow or name.partition(".")[0] not in ("tensorflow", "keras")}


def load(source: Path, lab: Lab | None = None) -> Material:
    """The material of `labs/NN_topic/lab.py`. Raises lab_sources.BrokenSource."""
    lab = lab or registry.lab(source.parent.name)
    notebook = lab_sources.convert(source, lab)
    stubs = {name: cell.source for name, cell in lab_cells.answer_cells(lab_sources.student(notebook).cells)}
    steps = _steps(notebook.cells)
    named = set[str]().union(*(_named_in(step.text) for step in steps if step.kind == StepKind.GIVEN))
    files = files_in(source.parent)
    return Material(lab, steps, stubs, {name: content for name, content in files.items() if name in named})


def files_in(folder: Path) -> dict[str, bytes]:
    """A lab's programs and data by name, without its notebooks."""
    return {
        file.name: file.read_bytes()
        for file in sorted(folder.glob("*"))
        if lab_sources.is_given(file) and file.stat().st_size <= _LARGEST_FILE
    }


def _imports_tensorflow(notebook: Path) -> bool:
    """Whether a cell of a notebook, which may be anything, seems to import it."""
    try:
        about = notebook.lstat()
        is_readable = stat.S_ISREG(about.st_mode) and about.st_size <= LARGEST_NOTEBOOK
        return is_readable and _IMPORTS_TENSORFLOW.search(notebook.read_bytes()) is not None
    except OSError:
        return False


def _named_in(text: str) -> set[str]:
    """The files that a cell may need: the texts in it, and what it imports as `NAME.py`."""
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except SyntaxError:  # IPython's own syntax
        return set()
    texts = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return texts | {f"{name}.py" for name in _imported(text)}


def _files_of(module: str) -> list[Path]:
    """The folder of a package, or the file of a module with its bytecode."""
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"a lab names {module}, which is not there")
    file = Path(spec.origin)
    if spec.submodule_search_locations:
        return [file.parent]
    return [file, *(file.parent / "__pycache__").glob(f"{file.stem}.*")]


def _steps(cells: Iterable[NotebookNode]) -> list[LabStep]:
    steps = []
    for number, cell in enumerate(cells):
        if cell.cell_type != "code":
            continue
        settings = cell.metadata.get("nbgrader", {})
        name = settings.get("grade_id", "")
        if settings.get("solution"):
            steps.append(LabStep(StepKind.ANSWER, name, cell.source))
        elif settings.get("grade"):
            steps.append(LabStep(StepKind.JUDGE, name.removeprefix(lab_sources.CHECK)))
        else:
            steps.append(LabStep(StepKind.GIVEN, f"cell {number + 1}", cell.source))
    return steps


def _imported(text: str) -> set[str]:
    try:
        tree = ast.parse(text)
    except SyntaxError:  # IPython's own syntax
        return set()
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{name.name}" for name in node.names)}
    return names
