"""Recording a notebook by its command: what is written, said and left, also when it is interrupted."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest

pytestmark = pytest.mark.slow
DISTLAB = [sys.executable, "-m", "course_tools"]


def source(folder: Path, text: str) -> Path:
    """A course of one chapter with this text."""
    (folder / "notebooks" / "src").mkdir(parents=True)
    (folder / "notebooks" / "src" / "01_topic.py").write_text(text)
    return folder / "notebooks" / "01_topic.ipynb"


@pytest.mark.parametrize(
    ("cell", "status", "said"),
    [
        ("1 + 2", 0, "notebooks/01_topic.ipynb\n"),
        ("one", 2, "notebooks/src/01_topic.py: the cell that begins with `one` fails: NameError: name 'one' is not"),
    ],
)
def test_the_command_writes_the_notebook_or_says_which_cell_fails(
    tmp_path: Path, cell: str, status: int, said: str
) -> None:
    notebook = source(tmp_path, f"# %%\n{cell}\n")
    command = [*DISTLAB, "notebooks", "--force"]
    finished = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert finished.returncode == status and finished.stdout.startswith(said)
    assert notebook.exists() is (status == 0)
    if notebook.exists():
        assert nbformat.read(notebook, as_version=4).cells[0].outputs[0].data["text/plain"] == "3"


def test_recording_that_is_interrupted_leaves_the_notebook(tmp_path: Path) -> None:
    started = tmp_path / "started"
    notebook = source(tmp_path, f"# %%\nopen({str(started)!r}, 'w').close()\nimport time\ntime.sleep(600)\n")
    notebook.write_text("as it was")
    command = [*DISTLAB, "notebooks", "--force"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    while not started.exists():
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 130 and "Traceback" not in output, output
    assert notebook.read_text() == "as it was"
