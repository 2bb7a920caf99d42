"""A notebook that trains runs where no network is."""

import sys
from pathlib import Path

import pytest

from distlab.runtime import processes

pytestmark = pytest.mark.slow

NOT_ALLOWED = 77


def test_a_training_notebook_runs_without_a_network(root: Path, tmp_path: Path) -> None:
    command = [sys.executable, str(Path(__file__).with_name("without_network.py"))]
    command += [sys.executable, "-m", "distlab.cli", "execute", "--only", "05"]
    (tmp_path / "notebooks").symlink_to(root / "notebooks")
    finished = processes.run(command, seconds=400, cwd=tmp_path)
    if finished.status == NOT_ALLOWED:
        pytest.skip(f"this machine does not let a test cut its network: {finished.output.strip()}")
    assert finished.status == 0, finished.output
    assert "All 1 notebooks ran without an error." in finished.output
