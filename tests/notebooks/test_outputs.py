"""Every notebook gives its committed outputs, and runs where no network is; a wrong output is noticed."""

import copy
import shutil
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook, new_output
from pytest_notebook.diffing import diff_notebooks, diff_to_string, filter_diff
from pytest_notebook.nb_regression import NBRegressionFixture
from pytest_notebook.notebook import load_notebook_with_config, regex_replace_nb
from pytest_notebook.post_processors import coalesce_streams

from course_tools import notebooks, runner
from course_tools.notebooks import VARIES
from course_tools.site.sources import ran_to_its_end
from distlab.runtime import processes

pytestmark = pytest.mark.usefixtures("one_job")


def differences(regression: NBRegressionFixture, committed: Path, executed: NotebookNode) -> str:
    """What pytest-notebook finds different in the outputs, by its settings in pyproject.toml; "" for nothing."""
    before, settings = load_notebook_with_config(str(committed))
    after, _ = coalesce_streams(copy.deepcopy(executed), {})
    replacements = [*regression.diff_replace, *settings.diff_replace]
    before, after = regex_replace_nb(before, replacements), regex_replace_nb(after, replacements)
    found = filter_diff(diff_notebooks(before, after), {*regression.diff_ignore, *settings.diff_ignore})
    return diff_to_string(before, found, use_color=False) if found else ""


def has_just_run(executed: Path, notebook: Path, root: Path) -> bool:
    """Whether `make execute` has written it with the default parameters, and nothing that it uses is newer."""
    used = [notebook, *(root / "src").rglob("*.py"), *(root / "notebooks/programs" / notebook.stem).glob("*.py")]
    if not ran_to_its_end(executed) or executed.stat().st_mtime < max(file.stat().st_mtime for file in used):
        return False
    return not nbformat.read(executed, as_version=4).metadata.papermill.parameters


@pytest.mark.slow
def test_a_notebook_gives_its_committed_outputs(
    notebook: Path, root: Path, nb_regression: NBRegressionFixture, tmp_path: Path
) -> None:
    if reason := runner.missing_requirement(notebook):
        pytest.skip(reason)
    build = root / "build"
    if not has_just_run(build / "executed" / notebook.name, notebook, root):
        build = tmp_path
        [outcome] = runner.run(runner.ExecutionPlan([notebook], build)).values()
        assert outcome.status == runner.OK, outcome.error
    executed = nbformat.read(build / "executed" / notebook.name, as_version=4)
    assert differences(nb_regression, notebook, executed) == ""


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("unshare"), reason="no network namespaces on this system")
def test_a_training_notebook_runs_without_a_network(root: Path, tmp_path: Path) -> None:
    (tmp_path / "notebooks").mkdir()
    shutil.copy(root / "notebooks" / "00_start_here.ipynb", tmp_path / "notebooks")
    alone = ["unshare", "--map-root-user", "--net", "sh", "-c", 'ip link set lo up || exit 77; exec "$@"', "sh"]
    if (cut := processes.run([*alone, "true"], seconds=60)).status:
        pytest.skip(f"this machine does not let a test cut its network: {cut.output.strip()}")
    command = [*alone, sys.executable, "-m", "course_tools", "execute", "--only", "00"]
    finished = processes.run(command, seconds=1200, cwd=tmp_path)
    assert finished.status == 0 and "The notebook ran without an error." in finished.output, finished.output


def test_a_changed_output_is_noticed(tmp_path: Path, nb_regression: NBRegressionFixture) -> None:
    texts = ["steps: 42", "seconds: 1.5", "largest difference of the weights: 3e-08 (tolerance 1e-05)"]
    cells = [new_code_cell("", outputs=[new_output("stream", text=f"{text}\n")]) for text in texts]
    cells[1].metadata = nbformat.from_dict({"tags": [VARIES], "nbreg": notebooks.NOT_COMPARED})
    nbformat.write(new_notebook(cells=cells), tmp_path / "small.ipynb")
    for cell, old, new, is_noticed in (
        (0, "42", "43", True),
        (1, "1.5", "150", False),
        (2, "3e-08", "0", False),
        (2, "weights", "losses", True),
    ):
        executed = nbformat.read(tmp_path / "small.ipynb", as_version=4)
        assert differences(nb_regression, tmp_path / "small.ipynb", executed) == ""
        executed.cells[cell].outputs[0].text = executed.cells[cell].outputs[0].text.replace(old, new)
        assert (new in differences(nb_regression, tmp_path / "small.ipynb", executed)) == is_noticed, new


def test_most_outputs_are_compared(notebook: Path) -> None:
    cells = [cell for cell in nbformat.read(notebook, as_version=4).cells if cell.cell_type == "code" and cell.outputs]
    compared = [cell for cell in cells if VARIES not in cell.metadata.get("tags", [])]
    assert len(compared) >= 3
    assert len(compared) >= 0.3 * len(cells)
