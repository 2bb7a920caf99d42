"""Errors of users end in one sentence: no traceback in Jupyter or from a program, whichever part raises them."""

import subprocess
import sys
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell

# What a user does wrong, and the sentence that Jupyter must show, alone.
MISTAKES = {
    "from distlab import data\ndata.load('mnits')": "UnknownDataset: ",
    "from distlab import cluster_spec\ncluster_spec.check('{}')": "ClusterSpecError: cluster is missing",
}


@pytest.fixture(autouse=True)
def no_files_in_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))


@pytest.mark.parametrize("cell", MISTAKES, ids=[sentence.partition(":")[0] for sentence in MISTAKES.values()])
def test_jupyter_shows_the_sentence_without_a_traceback(cell: str, capsys: pytest.CaptureFixture[str]) -> None:
    InteractiveShell().run_cell(cell)
    shown = capsys.readouterr().out.strip()
    assert shown.startswith(MISTAKES[cell])
    assert "\n" not in shown


def test_a_program_ends_with_the_sentence_and_another_error_keeps_its_traceback(
    capsys: pytest.CaptureFixture[str],
) -> None:
    program = "from distlab.large_batch import global_batches\nglobal_batches.numbers(0, 100, 101, 0)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)
    said = "BatchDoesNotFit: A global batch of 101 does not fit into 100 images; choose 1 to 100.\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", said)
    InteractiveShell().run_cell("raise ValueError('no sentence')")
    assert "Traceback" in capsys.readouterr().out
