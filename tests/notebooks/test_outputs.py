"""Every notebook, executed in a fresh kernel, gives its committed outputs; a wrong output is noticed."""

import re
import sys
from pathlib import Path

import nbformat
import pytest
from pytest_notebook.nb_regression import NBRegressionError, NBRegressionFixture

from distlab.course import notebooks, runner
from distlab.course.notebooks import VARIES
from distlab.runtime import processes
from tests.notebooks import checked_notebook, without_network

pytestmark = pytest.mark.slow

# This notebook, which trains, is executed where no network is.
OFFLINE = "05_save_and_load"

SMALL = """\
# %%
kept = 41
print("steps:", kept + 1)

# %% tags=["varies"]
print("seconds:", 1.5)

# %%
kept
"""


@pytest.fixture
def regression(nb_regression: NBRegressionFixture) -> NBRegressionFixture:
    """The fixture of pytest-notebook."""
    return nb_regression


@pytest.fixture(scope="module")
def offline(root: Path, pytestconfig: pytest.Config) -> processes.Finished:
    """The check of a notebook without a network, once for all tests that ask for it."""
    command = [sys.executable, without_network.__file__, sys.executable, checked_notebook.__file__]
    command += [str(root / "notebooks" / f"{OFFLINE}.ipynb"), pytestconfig.getini("nb_exec_timeout")]
    return processes.run([*command, *pytestconfig.getini("nb_diff_ignore")], seconds=600)


def test_a_notebook_gives_its_committed_outputs_and_leaves_no_process(
    notebook: Path, regression: NBRegressionFixture, request: pytest.FixtureRequest
) -> None:
    if reason := runner.missing_requirement(notebook):
        pytest.skip(reason)
    if notebook.stem == OFFLINE:
        finished = request.getfixturevalue("offline")
        if finished.status != without_network.NOT_ALLOWED:
            assert finished.status == 0, finished.output
            return
    assert checked_notebook.check(regression, notebook) == []


def test_a_training_notebook_runs_without_a_network(offline: processes.Finished) -> None:
    if offline.status == without_network.NOT_ALLOWED:
        pytest.skip(f"this machine does not let a test cut its network: {offline.output.strip()}")
    assert offline.status == 0, offline.output


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A notebook with committed outputs, made as the course's are, with one cell that varies."""
    (tmp_path / "00_small.py").write_text(SMALL)
    notebook = notebooks.execute(notebooks.convert(tmp_path / "00_small.py"), tmp_path)
    assert [VARIES in cell.metadata.get("tags", []) for cell in notebook.cells] == [False, True, False]
    nbformat.write(notebook, tmp_path / "00_small.ipynb")
    return tmp_path / "00_small.ipynb"


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
    small: Path, nb_regression: NBRegressionFixture
) -> None:
    changed = nbformat.read(small, as_version=4)
    output, number = compared_number(changed)
    output.text = f"{output.text[: number.start()]}{int(number[0]) + 1}{output.text[number.end() :]}"
    nbformat.write(changed, small)
    with pytest.raises(NBRegressionError, match=str(int(number[0]) + 1)):
        nb_regression.check(str(small))


def test_a_change_in_an_output_that_varies_is_let_pass_and_nothing_else(
    small: Path, nb_regression: NBRegressionFixture
) -> None:
    changed = nbformat.read(small, as_version=4)
    for cell in changed.cells:
        if VARIES in cell.metadata.get("tags", []):
            cell.outputs = [nbformat.v4.new_output("stream", name="stdout", text="planted\n")]
    nbformat.write(changed, small)
    nb_regression.check(str(small))


def test_most_outputs_are_compared(notebook: Path) -> None:
    cells = [cell for cell in nbformat.read(notebook, as_version=4).cells if cell.cell_type == "code" and cell.outputs]
    compared = [cell for cell in cells if VARIES not in cell.metadata.get("tags", [])]
    assert len(compared) >= 3
    assert len(compared) >= 0.3 * len(cells)
