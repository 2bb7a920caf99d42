"""Every notebook, executed in a fresh kernel, gives its committed outputs; a wrong output is noticed."""

import re
from pathlib import Path

import nbformat
import pytest
from pytest_notebook.nb_regression import NBRegressionError, NBRegressionFixture

from distlab.course import runner
from distlab.course.notebooks import VARIES
from distlab.runtime import processes

pytestmark = pytest.mark.slow


@pytest.fixture
def regression(nb_regression: NBRegressionFixture, root: Path) -> NBRegressionFixture:
    """The fixture of pytest-notebook, its kernels starting in notebooks/."""
    nb_regression.exec_cwd = str(root / "notebooks")
    return nb_regression


def test_a_notebook_gives_its_committed_outputs_and_leaves_no_process(
    notebook: Path, regression: NBRegressionFixture
) -> None:
    if reason := runner.missing_requirement(notebook):
        pytest.skip(reason)
    mark = processes.new_mark()
    regression.exec_env = {processes.MARK: mark}
    try:
        regression.check(str(notebook))
        assert processes.alive(mark) == []
    finally:
        processes.end(mark)


def compared_number(notebook: nbformat.NotebookNode) -> tuple[nbformat.NotebookNode, re.Match[str]]:
    """A printed output that is compared and holds a number, and the number."""
    for cell in notebook.cells:
        if cell.cell_type != "code" or VARIES in cell.metadata.get("tags", []):
            continue
        for output in cell.outputs:
            if output.output_type == "stream" and (number := re.search(r"\d+", output.text)):
                return output, number
    raise AssertionError("no compared output holds a number")


def test_a_changed_number_in_a_compared_output_turns_the_run_red(
    root: Path, tmp_path: Path, regression: NBRegressionFixture
) -> None:
    changed = nbformat.read(root / "notebooks" / "01_why_distribute.ipynb", as_version=4)
    output, number = compared_number(changed)
    output.text = f"{output.text[: number.start()]}{int(number[0]) + 1}{output.text[number.end() :]}"
    nbformat.write(changed, tmp_path / "changed.ipynb")
    with pytest.raises(NBRegressionError, match=str(int(number[0]) + 1)):
        regression.check(str(tmp_path / "changed.ipynb"))


def test_a_change_in_an_output_that_varies_is_let_pass_and_nothing_else(
    root: Path, tmp_path: Path, regression: NBRegressionFixture
) -> None:
    changed = nbformat.read(root / "notebooks" / "01_why_distribute.ipynb", as_version=4)
    varying = [cell for cell in changed.cells if VARIES in cell.metadata.get("tags", [])]
    assert varying, "the notebook has no cell that varies; plant the change elsewhere"
    for cell in varying:
        cell.outputs = [nbformat.v4.new_output("stream", name="stdout", text="planted\n")]
    nbformat.write(changed, tmp_path / "changed.ipynb")
    regression.check(str(tmp_path / "changed.ipynb"))


def test_most_outputs_are_compared(notebook: Path) -> None:
    cells = [cell for cell in nbformat.read(notebook, as_version=4).cells if cell.cell_type == "code" and cell.outputs]
    compared = [cell for cell in cells if VARIES not in cell.metadata.get("tags", [])]
    assert len(compared) >= 3
    assert len(compared) >= 0.3 * len(cells)
