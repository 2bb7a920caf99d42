"""Errors of users end in one sentence: no traceback in Jupyter or from a program, whichever part raises them."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell

# What a user does wrong, and the sentence that Jupyter must show, alone.
MISTAKES = {
    "from distlab import data\ndata.load('mnits')": "UnknownDataset: ",
    "from distlab import cluster_spec\ncluster_spec.check('{}')": "ClusterSpecError: cluster is missing",
    "from distlab import launch\nlaunch.tensorflow('nowhere.py')": "LaunchError: There is no program nowhere.py",
    "from distlab import devices\nraise devices.DevicesAlreadyUsed('restart')": "DevicesAlreadyUsed: restart",
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


@pytest.mark.slow
def test_another_error_keeps_its_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    InteractiveShell().run_cell("raise ValueError('no sentence')")
    assert "Traceback" in capsys.readouterr().out


def ended(program: str) -> str:
    """What a program that ends with an error writes about it."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 1 and not done.stdout
    return done.stderr


def test_a_program_ends_with_the_sentence_and_without_a_traceback() -> None:
    said = ended("from distlab.large_batch import global_batches\nglobal_batches.numbers(0, 100, 101, 0)")
    assert said == "BatchDoesNotFit: A global batch of 101 does not fit into 100 images; choose 1 to 100.\n"


@pytest.mark.parametrize(("name", "sentence"), [("distlab", "\nInterrupted.\n"), ("train.py", None)])
def test_an_interrupt_while_the_command_is_loaded_is_one_word(name: str, sentence: str | None, tmp_path: Path) -> None:
    program = tmp_path / name
    program.write_text("raise KeyboardInterrupt\n")
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == -signal.SIGINT  # a shell says 130
    assert done.stderr == sentence or (sentence is None and "Traceback" in done.stderr)


def test_another_error_of_a_program_keeps_its_traceback() -> None:
    assert ended("import distlab\nraise ValueError('no sentence')").startswith("Traceback")
