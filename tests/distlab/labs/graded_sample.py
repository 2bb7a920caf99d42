"""The sample lab as grading has it, and a notebook with answers to it."""

from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest

from course_tools import lab_cells, lab_sources
from course_tools.grading import notebook
from course_tools.grading.grade import grade
from course_tools.grading.notebook import Cell, Material, Role
from course_tools.grading.submissions import Submission
from course_tools.sandbox import Kind, protections
from tests.distlab.labs import sample_lab

Handin = Callable[..., nbformat.NotebookNode]
Grading = Callable[..., Submission]


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
    return notebook.load(sample_source, sample_lab.lab())


@pytest.fixture(scope="session")
def kind() -> Kind:
    """The best jail of this machine."""
    return protections.strongest(accept_weak=True)[0]


@pytest.fixture(scope="session")
def isolated(kind: Kind) -> None:
    """Skips what would reach the files and processes of whoever runs the tests."""
    if kind is Kind.WEAK:
        pytest.skip("this machine has no jail: neither bubblewrap nor user namespaces")


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
def graded(sample: Material, kind: Kind) -> Grading:
    """Grade the right answers to the sample lab, unless others are given by exercise, or other cells."""

    def grading(cells: list[Cell] | None = None, of: Material = sample, seed: int = 3, **answers: str) -> Submission:
        texts = sample_lab.ANSWERS | answers
        submission = Submission("", of.lab.name)
        cells = cells or [Cell(Role.ANSWER, name, text) for name, text in texts.items()]
        grade(submission, cells, of, kind, seed)
        return submission

    return grading
