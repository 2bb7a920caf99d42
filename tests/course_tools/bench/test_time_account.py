"""What a sampled stack was busy with."""

import shutil
import sys
from pathlib import Path

import nbformat
import pytest

from course_tools.bench import time_account
from course_tools.bench.time_account import COMPUTING, DRAWING, IMPORTS, KINDS, PYTHON, TRACING

STACKS = {
    IMPORTS: "<module> (train.py:3);_find_and_load (<frozen importlib._bootstrap>:1176);exec (numpy/__init__.py:9)",
    DRAWING: "<module> (cell:1);bars (distlab/draw/plots.py:30);barh (matplotlib/axes/_axes.py:2500)",
    TRACING: "train (train.py:9);func_graph_from_py_func (tensorflow/python/func_graph.py:9);dense (keras.py:3)",
    COMPUTING: "train (train.py:9);quick_execute (tensorflow/python/eager/execute.py:53)",
    PYTHON: "train (train.py:9);shuffle (random.py:348)",
}


@pytest.mark.parametrize("kind", STACKS)
def test_a_stack_is_of_the_kind_that_its_frames_tell(kind: str) -> None:
    prefix = 'process 7:"python -m ipykernel";'
    assert time_account.classify([f"{prefix}{STACKS[kind]} 3", f"{prefix}{STACKS[kind]} 2"]) == {kind: 5}


def test_a_sample_that_was_torn_is_left_out() -> None:
    torn = ['process 7:"python";train (a', "b.py:3) 2", "", "no number"]
    assert time_account.classify([*torn, f"{STACKS[DRAWING]} 4"]) == {DRAWING: 4, PYTHON: 2}


@pytest.mark.long
def test_the_account_of_a_notebook_adds_up(tmp_path: Path) -> None:
    if not shutil.which("py-spy"):
        pytest.skip("py-spy is not installed")
    busy = "import time\nend = time.process_time() + 3\nwhile time.process_time() < end:\n    sum(range(1000))"
    file = tmp_path / "00_busy.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(busy)]), file)
    account = time_account.account(sys.executable, file)
    assert set(account) == {*KINDS, "elapsed", "idle"}
    assert account[PYTHON] > 0
    assert sum(account[kind] for kind in KINDS) <= 1.2 * (account["elapsed"] * 2 + 2)
