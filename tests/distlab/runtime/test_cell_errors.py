"""Errors of a cell whose cause is outside of it end in one sentence, without a traceback."""

import re
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell
from jupyter_client.manager import start_new_kernel
from traitlets.config import Config

from distlab.runtime import cell_errors


def new_shell() -> InteractiveShell:
    shell = InteractiveShell(config=Config({"HistoryManager": {"enabled": False}}))  # nothing of it in the home folder
    cell_errors.load_ipython_extension(shell)
    return shell


def test_a_folder_that_a_cell_made_again_is_named_with_the_cells(capsys: pytest.CaptureFixture[str]) -> None:
    shell = new_shell()
    for cell in (
        "import tempfile",
        "scratch = tempfile.TemporaryDirectory()\nfolder = scratch.name",
        "open(folder + '/saved', 'w').close()",
        "open(folder + '/never')",
    ):
        shell.run_cell(cell, store_history=True)
    assert "temporary folder" not in capsys.readouterr().out
    shell.run_cell("import os\nscratch = tempfile.TemporaryDirectory()\nfolder = scratch.name", store_history=True)
    failed = shell.run_cell("open(folder + '/saved')", store_history=True)
    assert str(failed.error_in_exec).endswith("from the one that makes it on again.")
    assert re.fullmatch(
        r"FileNotFoundError: .*saved'\. Cell \[5\] has made the temporary folder of cell \[2\] again, without the "
        r"files that were in it: run all cells from the one that makes it on again\.\n",
        capsys.readouterr().out,
    )
    failed = shell.run_cell("open('data.csv')", store_history=True)
    assert "data.csv" in str(failed.error_in_exec) and "temporary folder" not in str(failed.error_in_exec)


@pytest.mark.slow
def test_a_cell_ends_with_a_sentence_on_its_cause(tmp_path: Path) -> None:
    file = tmp_path / "numpy.py"
    file.write_text("")
    manager, client = start_new_kernel(cwd=str(tmp_path))
    try:
        shown: list[dict] = []
        for cell in (
            "import numpy.typing",
            "from numpy import missing",
            "workers = '4'",
            "max(workers, 2)",
            "[].missing",
        ):
            client.execute_interactive(cell, timeout=300, output_hook=shown.append)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    errors = [message["content"] for message in shown if message["msg_type"] == "error"]
    sentence = f"The file {file} hides the package numpy: give it another name. Then restart the kernel."
    assert [error["traceback"] for error in errors[:3]] == [
        [f"ModuleNotFoundError: No module named 'numpy.typing'; 'numpy' is not a package. {sentence}"],
        [f"ImportError: cannot import name 'missing' from 'numpy' ({file}). {sentence}"],
        [
            "TypeError: '>' not supported between instances of 'int' and 'str'. workers is the text '4': give "
            "papermill numbers with -p, as in -p workers 4, not -r."
        ],
    ]
    assert len(errors) == 4 and len(errors[3]["traceback"]) > 1
    assert errors[0]["evalue"].endswith(sentence)
