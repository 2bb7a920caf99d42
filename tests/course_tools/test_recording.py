"""Recording a notebook that is interrupted."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

DISTLAB = [sys.executable, "-m", "course_tools"]


@pytest.mark.slow
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_recording_that_is_interrupted_says_so_and_leaves_the_notebook(
    tmp_path: Path, number: signal.Signals, status: int
) -> None:
    source = tmp_path / "notebooks" / "src" / "01_long.py"
    source.parent.mkdir(parents=True)
    started = tmp_path / "started"
    source.write_text(f"# %%\nopen({str(started)!r}, 'w').close()\nimport time\ntime.sleep(600)\n")
    target = tmp_path / "notebooks" / "01_long.ipynb"
    target.write_text("as it was")
    command = [*DISTLAB, "notebooks", "--force"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    while not started.exists():
        assert process.poll() is None
    os.kill(process.pid, number)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == status, output
    assert output.endswith("\nInterrupted; notebooks/01_long.ipynb is as it was.\n"), output
    assert "Traceback" not in output
    assert target.read_text() == "as it was"
