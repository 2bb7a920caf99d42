"""A cell that is run again after a later one has set a name again is named, and only such a one."""

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from distlab.runtime import cell_errors
from distlab.runtime.cells_run_again import Runs

MAKES, SAVES, READS, TAKES = "model = [1, 2]", "saved = len(model)", "assert saved == 2", "for model in ['', []]: pass"


def ran(*cells: str | tuple[str, str]) -> Runs:
    runs = Runs()
    for number, cell in enumerate(cells, 1):
        name, source = cell if isinstance(cell, tuple) else (None, cell)
        runs.add(number, source, name)
    return runs


@pytest.mark.parametrize("again", [[SAVES], [SAVES, READS]], ids=["itself", "one before"])
def test_a_cell_that_was_run_again_with_a_name_set_again_is_named(again: list[str]) -> None:
    assert ran(MAKES, SAVES, READS, TAKES, *again).cause() == (
        "Cell [5] was run again, but `model` is no longer what cell [1] has made, since cell [4] has set it: if that "
        "is the reason, run all cells from [1] on again."
    )


@pytest.mark.parametrize(
    "cells",
    [
        [],
        [MAKES, SAVES, TAKES],
        [MAKES, SAVES, SAVES],
        [MAKES, SAVES, TAKES, "assert model"],
        [MAKES, SAVES, TAKES, MAKES, SAVES],
        [MAKES, SAVES, TAKES, SAVES, MAKES, SAVES],
        [("a", MAKES), ("b", SAVES), ("a", "model = [1, 2, 3]"), ("b", SAVES)],
        ["import json", "json.dumps(1)", "import json", "json.dumps(1)"],
        ["model = 1", "def f(model):\n    return model", "model = 2", "def f(model):\n    return model"],
        ["this is no Python", "this is no Python"],
    ],
)
def test_no_cell_is_named_that_sees_what_it_saw_at_first(cells: list[str | tuple[str, str]]) -> None:
    assert ran(*cells).cause() is None


def test_the_sentence_is_below_the_error_of_the_cell(capsys: pytest.CaptureFixture[str]) -> None:
    shell = InteractiveShell(config=Config({"HistoryManager": {"enabled": False}}))
    cell_errors.load_ipython_extension(shell)
    for cell in (MAKES, SAVES, READS, TAKES, SAVES, READS):
        shell.run_cell(cell, store_history=True)
    shown = capsys.readouterr().out
    assert "AssertionError" in shown
    assert "Cell [5] was run again, but `model` is no longer what cell [1] has made" in shown
    shell.run_cell("1 / 0", store_history=True)
    assert "run again" not in capsys.readouterr().out
