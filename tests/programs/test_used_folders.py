"""Programs begin in a folder with checkpoints with --resume alone."""

from pathlib import Path

import pytest

from tests.prepared_runs import PreparedRuns

pytestmark = [pytest.mark.slow]


def times_of_files(folder: Path) -> dict[Path, int]:
    return {file: file.stat().st_mtime_ns for file in folder.rglob("*")}


def test_a_program_begins_in_no_folder_that_has_checkpoints(runs: PreparedRuns, root: Path, tmp_path: Path) -> None:
    command = [root / "labs/16_capstone/train_serial.py", "--texts", 500, "--epochs", 2, "--folder", tmp_path]
    first = runs.run(*command)
    assert first.status == 0, first.output
    before = times_of_files(tmp_path)
    refused = runs.run(*command)
    assert refused.status == 1 and "Traceback" not in refused.output, refused.output
    last = refused.output.splitlines()[-1]
    assert last.startswith(f"{tmp_path} holds checkpoints, the newest is ") and "add --resume to go on" in last
    again = runs.run(*command, "--resume")  # and finds nothing left to do
    assert "Traceback" not in again.output and "--epochs can ask for more" in again.output.splitlines()[-1]
    assert times_of_files(tmp_path) == before
