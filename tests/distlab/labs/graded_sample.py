"""The sample lab as grading has it, and one process that all sandboxes of a test file come from."""

from collections.abc import Callable, Iterator
from pathlib import Path

import nbformat
import pytest

from course_tools import lab_cells, lab_sources
from course_tools.grading import material, notebook, origin
from course_tools.grading.grade import Report, grade
from course_tools.grading.material import Material
from course_tools.sandbox import SandboxedWork, SandboxLimits, Server
from tests.distlab.labs import sample_lab

Handin = Callable[..., nbformat.NotebookNode]


@pytest.fixture(scope="session")
def sample_source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample lab's text in a folder like labs/, with a program beside its notebooks."""
    file = tmp_path_factory.mktemp("labs") / "90_sample" / "lab.py"
    file.parent.mkdir()
    file.write_text(sample_lab.source())
    file.with_name("given.py").write_text("NUMBER = 7\n")
    return file


@pytest.fixture(scope="session")
def sample(sample_source: Path) -> Material:
    """The sample lab, loaded."""
    return material.load(sample_source, sample_lab.lab())


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """What sandboxes are forked from."""
    with Server(["numpy"]) as server:
        yield server


@pytest.fixture
def handed_in(sample_source: Path) -> Handin:
    """The student's notebook with answers in it: the right ones, unless others are given by exercise."""

    def made(**answers: str) -> nbformat.NotebookNode:
        made = lab_sources.student(lab_sources.convert(sample_source, sample_lab.lab()))
        for name, cell in lab_cells.answer_cells(made.cells):
            cell.source = answers.get(name, sample_lab.ANSWERS[name])
        return made

    return made


@pytest.fixture
def graded(sample: Material, server: Server, tmp_path: Path) -> Callable[..., Report]:
    """Grade a notebook of the sample lab."""

    def grading(
        handed_in: nbformat.NotebookNode, of: Material = sample, seed: int = 3, limits: SandboxLimits | None = None
    ) -> Report:
        file = tmp_path / "lab.ipynb"
        nbformat.write(handed_in, file)
        fitted = notebook.fit(notebook.read(file), of.steps, of.stubs)
        fitted.origin = origin.of(file)
        with SandboxedWork(server, limits or of.limits, of.files) as work:
            return grade(of.lab, fitted, work, seed)

    return grading
