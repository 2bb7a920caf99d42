"""A `%%px` cell without ranks says how to start them."""

import pytest

from distlab import launch
from distlab.launch import parallel_cells


def test_a_cell_for_ranks_that_were_never_started_says_which_cell_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell()
    monkeypatch.setattr("IPython.get_ipython", lambda: shell)
    parallel_cells.expect()
    with pytest.raises(launch.EnginesFailed, match="No ranks have been started: run the cell with launch"):
        shell.run_cell_magic("px", "", "print(1)")
