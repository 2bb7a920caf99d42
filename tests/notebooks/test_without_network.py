"""`make execute` runs where no network is; for a notebook of the course see `test_outputs.py`."""

import sys
from pathlib import Path

import nbformat
import pytest

from distlab.runtime import processes
from tests.notebooks import without_network

pytestmark = pytest.mark.slow


def test_notebooks_are_executed_without_a_network(tmp_path: Path) -> None:
    (tmp_path / "notebooks").mkdir()
    small = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("print(1)")])
    nbformat.write(small, tmp_path / "notebooks" / "05_small.ipynb")
    command = [sys.executable, without_network.__file__]
    command += [sys.executable, "-m", "course_tools", "execute", "--only", "05"]
    finished = processes.run(command, seconds=400, cwd=tmp_path)
    if finished.status == without_network.NOT_ALLOWED:
        pytest.skip(f"this machine does not let a test cut its network: {finished.output.strip()}")
    assert finished.status == 0, finished.output
    assert "The notebook ran without an error." in finished.output
