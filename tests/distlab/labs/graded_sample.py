"""The sample lab as grading has it, and a notebook with answers to it."""

from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest

from course_tools import lab_cells, lab_sources
from course_tools.grading import notebook
from course_tools.grading.grade import grade
from course_tools.grading.notebook import Material
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
def graded(sample: Material, kind: Kind, tmp_path: Path) -> Grading:
    """Grade a notebook of the sample lab."""

    def grading(handed_in: nbformat.NotebookNode, of: Material = sample, seed: int = 3) -> Submission:
        submission = Submission("", of.lab.name, tmp_path / "lab.ipynb")
        nbformat.write(handed_in, submission.file)
        grade(submission, notebook.read(submission.file), of, kind, seed)
        return submission

    return grading
