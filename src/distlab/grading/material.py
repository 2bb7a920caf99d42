"""What grading knows of a lab: its exercises, its notebook, the files beside it."""

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from distlab.course import lab_sources
from distlab.grading import script
from distlab.grading.script import GIVEN, Step
from distlab.labs import registry
from distlab.labs.lab import Lab
from distlab.sandbox import Limits
from distlab.sandbox.limits import PLAIN, TENSORFLOW

_LARGEST_FILE = 2 * 2**20


@dataclass(frozen=True)
class Material:
    """A lab as it is graded: its steps, the untouched texts of its answers by exercise, files for the sandbox."""

    lab: Lab
    steps: Sequence[Step]
    stubs: dict[str, str]
    files: dict[str, bytes]

    @property
    def limits(self) -> Limits:
        """What a student's process may use."""
        return TENSORFLOW if self.lab.tensorflow else PLAIN

    @property
    def modules(self) -> set[str]:
        """The modules that the given cells import; without TensorFlow unless the lab says that it needs it."""
        found = {f"distlab.labs.lab_{self.lab.number}.lab"} | ({"tensorflow"} if self.lab.tensorflow else set())
        for step in self.steps:
            if step.kind == GIVEN:
                found |= _imported(step.text)
        return {name for name in found if self.lab.tensorflow or name.partition(".")[0] not in ("tensorflow", "keras")}


def load(source: Path, lab: Lab | None = None) -> Material:
    """The material of `labs/src/NN_topic.py`. Raises lab_sources.BrokenSource."""
    lab = lab or registry.lab(source.stem)
    notebook = lab_sources.convert(source, lab)
    stubs = {name: lab_sources.stubbed(cell.source) for name, cell in lab_sources.answer_cells(notebook)}
    return Material(lab, script.of_cells(notebook.cells), stubs, files_beside(lab_sources.folder_of(source)))


def files_beside(folder: Path) -> dict[str, bytes]:
    """The lab's programs and data by name, without its notebooks."""
    return {
        file.name: file.read_bytes()
        for file in sorted(folder.glob("*"))
        if file.is_file() and file.suffix != ".ipynb" and file.stat().st_size <= _LARGEST_FILE
    }


def _imported(text: str) -> set[str]:
    try:
        tree = ast.parse(text)
    except SyntaxError:  # IPython's own syntax
        return set()
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{name.name}" for name in node.names)}
    return found
